job "web" {}

statefulset "web" {
  count        = 3
  replcas      = 3
  image        = "x"
  serviceName  = "x"
  labels { app = "web" }
  port         = 80
  kill_timeout = "5s"

  volumeClaimTemplates          = []
  terminationGracePeriodSeconds = 10

  volumes = []

  container "a" {
    image       = "x"
    ports       = ["80:80"]
    environment = { A = "b" }
    depends_on  = ["x"]

    healthcheck {}
    volume_mount {}
    template {}
  }

  update {
    max_parallel = 1
    auto_revert  = true
  }
}
