statefulset "web" {
  container "web" { image = "x" pull = "always" }
}
