variable "n" {}

statefulset "web" {
  replicas          = -1
  start_ordinal     = 1.5
  termination_grace = 30
  pod_management    = "Ordered"

  update {
    max_unavailable = "0%"
    partition       = self.ordinal
  }

  volume "data" {
    size = "1 Gigabyte"
  }

  container "a" {
    image       = ""
    args        = "redis"
    user        = {}
    working_dir = "data"
    stop_signal = "SIGTERMM"

    mount "dta" {
      path = "/x"
    }

    file "/etc/x" {
      content = self.nme
      mode    = 0644
      owner   = "redis"
    }

    port "80" {
      container = 80
    }

    port "http" {
      container = 70000
      host_ip   = "localhost"
    }
  }
}
