locals {
  digits = [for x in range(1000) : x]
  pairs  = setproduct(local.digits, local.digits, local.digits)
}

statefulset "web" {
  replicas = 2

  container "web" {
    image = "x"
    args  = ["${self.name}${join(",", [for a in local.digits : join(",", [for b in local.digits : "${a}${b}"])])}"]
    user  = join(join("", [for x in range(1000) : "0123456789"]), range(1000))

    env = {
      A = format("%999999999d", 1)
      B = replace(join("", local.digits), "", join("", local.digits))
      C = "${"1e99999999" * 1}"
    }
  }
}
