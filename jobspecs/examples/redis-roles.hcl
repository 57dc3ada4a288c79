# Redis whose primary may be moved: what `replicaof` sets is kept on the volume, so
# that each member comes back in the role that it had. The role probe tells stsd who
# is the primary now, and an update takes that one last.

variable "image" {
  type        = string
  default     = "redis:7"
  description = "what to run"
}

statefulset "redis" {
  replicas          = 3
  termination_grace = "30s" # time to write what is in memory

  update {
    order     = "role"
    last      = "master" # as Redis calls it
    min_ready = "2s"
  }

  locals { # the roles of a fresh set
    replicaof = self.ordinal == set.first.ordinal ? "" : "replicaof ${set.first.fqdn} 6379"
  }

  guard { # whoever asks, one member at a time
    min_available = set.replicas - 1
  }

  volume "data" {
    size = "1GiB"
  }

  container "redis" {
    image = var.image
    args  = ["sh", "-c", "[ -s /data/redis.conf ] || cp /etc/redis.conf /data/redis.conf; exec docker-entrypoint.sh redis-server /data/redis.conf"]

    port "client" {
      container = 6379
    }

    mount "data" {
      path = "/data"
    }

    file "/etc/redis.conf" { # of the first start only
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

    probe "role" { # the first line: master or slave
      exec {
        command = ["redis-cli", "role"]
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
