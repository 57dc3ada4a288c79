# Redis: redis-0 is the primary, the others replicate it. Each member keeps an
# append-only file on its volume and announces its name, which stays when its
# container is replaced.

variable "image" {
  type        = string
  default     = "redis:7"
  description = "what to run"
}

statefulset "redis" {
  replicas          = 3
  termination_grace = "30s" # time to write what is in memory

  locals {
    replicaof = self.ordinal == set.first.ordinal ? "" : "replicaof ${set.first.fqdn} 6379"
  }

  volume "data" {
    size = "1GiB"
  }

  container "redis" {
    image = var.image
    args  = ["redis-server", "/etc/redis.conf"]

    port "client" {
      container = 6379
    }

    mount "data" {
      path = "/data"
    }

    file "/etc/redis.conf" {
      content = <<-EOT
        dir /data
        appendonly yes
        bind 0.0.0.0
        protected-mode no
        replica-announce-ip ${self.fqdn}
        ${local.replicaof}
      EOT
    }

    probe "readiness" { # a replica is ready when it has its primary's data
      exec {
        command = ["sh", "-c", "redis-cli ping | grep -q PONG && redis-cli info replication | grep -Eq 'role:master|master_link_status:up'"]
      }

      period = "2s"
    }

    probe "liveness" {
      tcp {
        port = "client"
      }
    }
  }
}
