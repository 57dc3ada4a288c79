locals {
  a = local.b
  b = local.c
  c = "${local.a}x"
  d = local.d
  e = local.a
}
statefulset "web" { 
  locals {
 x = "${local.y}${self.name}"
   y = local.x
}
  container "a" { image = local.a } 
}
