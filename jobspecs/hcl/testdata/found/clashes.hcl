statefulset "web" {
  replicas = 3
  container "a" {
    image = "x"
    port "http" {
      container = 80
      host = 8080
    }
  }
}
statefulset "big" {
  replicas = 3
  container "a" {
    image = "x"
    port "http" {
      container = 80
      host = 65534 + self.ordinal
    }
  }
}
statefulset "web" {
container "a" {
 image = "x" 
}
}
statefulset "web-1" { 
 container "a" { image = "x" }
 container "a" { image = "x" }
}
statefulset "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijkl" { 
 container "a" { image = "x" }
}
statefulset "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabc" { 
 container "a" { image = "x" }
}
statefulset "None" { 
 container "a" { image = "x" }
}
statefulset "m" {
 volume "d" {}
 volume "d" {}
 volume "e" {}
 container "a" { 
 image = "x" 
 mount "d" { path = "/data" }
 mount "e" { path = "/data/sub/" }
 }
}
