# Three web servers, each with a volume of its own. `make demo` makes the image.

variable "image" {
  type        = string
  default     = "stsd-demo:1"
  description = "what to run"
}

statefulset "web" {
  replicas          = 3
  termination_grace = "10s"

  volume "data" {
    size = "64MiB"
  }

  container "web" {
    image = var.image

    env = {
      MEMBER = self.name
    }

    port "http" {
      container = 8080
    }

    mount "data" { # /data/log gets a line at every start
      path = "/data"
    }

    probe "readiness" {
      http {
        port = "http"
        path = "/healthz"
      }

      period = "2s"
    }
  }
}
