# Every field that a spec may have, once at least, with values that run on
# redis:7 and busybox:1. TestTheFullSpecHasEveryField holds it to the schema.

variable "image" {
  type        = string
  default     = "redis:7"
  description = "what to run"
  sensitive   = false

  validation {
    condition     = var.image != ""
    error_message = "An image is needed."
  }
}

variable "password" {
  type      = string
  default   = "open sesame"
  sensitive = true
}

secret "cookie" {
  length = 32
  format = "hex"
}

locals {
  data = "/data"
}

statefulset "full" {
  namespace              = "full"
  replicas               = 2
  start_ordinal          = 1
  service                = "full-nodes"
  pod_management         = "ordered"
  recovery_wait          = "0s"
  revision_history_limit = 10
  termination_grace      = "20s"
  share_processes        = true
  reserve                = [9]
  start_after            = ["config"]
  networks               = ["myapp_default", "edge"]

  labels = {
    member = self.name
  }

  extra_hosts = {
    gateway = self.host_ip
  }

  sysctls = {
    "net.core.somaxconn" = 1024
  }

  locals {
    replicaof = self.ordinal == set.first.ordinal ? "" : "replicaof ${set.first.fqdn} 6379"
  }

  update {
    strategy        = "rolling"
    partition       = 0
    max_unavailable = 1
    min_ready       = "0s"
    deadline        = "10m"
    on_failure      = "pause"
    order           = "role"
    last            = "master"
  }

  guard {
    min_available = floor(set.replicas / 2)
  }

  dns {
    member_names = "always"
    set_name     = "peers"
    ttl          = "5s"
    negative_ttl = "2s"
  }

  host_access {
    mode = "direct"
  }

  volume "data" {
    size          = "64MiB"
    driver        = "local"
    options       = {}
    on_scale_down = "retain"
    on_delete     = "delete"
  }

  scratch "run" {
    medium = "memory"
    size   = "8MiB"
  }

  scratch "cache" {
    medium = "disk"
  }

  bind "certs" {
    source    = "/etc/ssl/certs"
    read_only = true
  }

  init "prepare" {
    image   = "busybox:1"
    command = ["sh", "-c", "echo prepared by ${self.name} > /data/prepared && chown 999:999 /data/prepared && mkdir -p /cache/www && echo ok > /cache/www/health"]

    mount "data" {
      path = local.data
    }

    mount "cache" {
      path = "/cache"
    }
  }

  sidecar "health" { # answers http on 8080, and every gRPC health check on 9090 with SERVING
    image   = "busybox:1"
    command = ["sh", "-c"]
    args    = ["nc -ll -p 9090 -e /bin/serving & echo listening; exec httpd -f -p 8080 -h /www"]

    port "health" {
      container = 8080
    }

    port "grpc" {
      container = 9090
    }

    mount "cache" {
      path      = "/www"
      sub_path  = "www"
      read_only = true
    }

    file "/bin/serving" {
      mode = "0755"

      # Frames of HTTP/2: settings and their acknowledgement, then the answer of stream 1.
      content = <<-EOT
        #!/bin/sh
        printf '\000\000\000\004\000\000\000\000\000\000\000\000\004\001\000\000\000\000'
        sleep 1
        printf '\000\000\024\001\004\000\000\000\001\210\017\020\020application/grpc'
        printf '\000\000\007\000\000\000\000\000\001\000\000\000\000\002\010\001'
        printf '\000\000\017\001\005\000\000\000\001\000\013grpc-status\0010'
        sleep 1
      EOT
    }

    probe "startup" {
      log {
        pattern = "^listening$"
      }

      period            = "1s"
      failure_threshold = 30
    }

    probe "readiness" {
      http {
        port   = "health"
        path   = "/health"
        scheme = "http"

        headers = {
          X-Member = self.name
        }
      }
    }

    probe "liveness" {
      grpc {
        port    = "grpc"
        service = ""
      }

      initial_delay = "1s"
      period        = "10s"
      timeout       = "5s"
    }

    lifecycle {
      post_start {
        sleep {
          duration = "100ms"
        }
      }

      pre_stop {
        http {
          port    = "health"
          path    = "/health"
          scheme  = "http"
          headers = {}
        }
      }
    }
  }

  hook "form" {
    on         = "set_ready"
    once       = true
    ordinal    = 1
    container  = "redis"
    timeout    = "30s"
    on_failure = "continue"
    command    = ["redis-cli", "ping"]
  }

  container "redis" {
    image       = var.image
    pull        = "missing"
    command     = ["docker-entrypoint.sh"]
    args        = ["redis-server", "/etc/redis.conf"]
    working_dir = "/data"
    user        = "999:999"
    stop_signal = "SIGTERM"

    env = {
      MEMBER = self.name
    }

    ulimits = {
      nofile = "1024:4096"
      core   = 0
    }

    registry_auth {
      username = "ci"
      password = var.password
    }

    port "client" {
      container = 6379
      protocol  = "tcp"
      host      = 26379 + self.ordinal
      host_ip   = "127.0.0.1"
    }

    mount "data" {
      path      = local.data
      sub_path  = ""
      read_only = false
    }

    mount "run" {
      path = "/run/redis"
    }

    mount "certs" {
      path = "/etc/ssl/certs"
    }

    file "/etc/redis.conf" {
      mode      = "0644"
      owner     = "999:999"
      sensitive = false
      content   = <<-EOT
        dir /data
        protected-mode no
        pidfile /run/redis/redis.pid
        include /run/secrets/redis.conf
        replica-announce-ip ${self.fqdn}
        ${local.replicaof}
      EOT
    }

    file "/run/secrets/redis.conf" {
      mode      = "0600"
      owner     = "999:999"
      sensitive = true
      content   = "requirepass ${secret.cookie}\nmasterauth ${secret.cookie}\n"
    }

    probe "startup" {
      tcp {
        port = "client"
      }

      period            = "1s"
      failure_threshold = 60
    }

    probe "readiness" {
      exec {
        command = ["sh", "-c", "redis-cli ping | grep -Eq 'PONG|NOAUTH'"]
      }

      initial_delay     = "0s"
      period            = "2s"
      timeout           = "5s"
      success_threshold = 1
      failure_threshold = 3
    }

    probe "role" {
      exec {
        command = ["sh", "-c", "grep -q '^replicaof' /etc/redis.conf && echo replica || echo primary"]
      }

      period = "5s"
    }

    lifecycle {
      post_start {
        exec {
          command = ["touch", "/run/redis/started"]
        }
      }

      pre_stop {
        exec {
          command = ["rm", "-f", "/run/redis/started"]
        }
      }
    }

    restart {
      first   = "0s"
      initial = "1s"
      max     = "1m"
      reset   = "5m"
    }

    resources {
      cpu                = 0.5
      memory             = "256MiB"
      memory_reservation = "128MiB"
      pids               = 512
      shm_size           = "64MiB"
      gpus               = ""
    }

    security {
      privileged        = false
      read_only_root    = true
      no_new_privileges = true
      run_as_non_root   = true
      fs_group          = 999
      cap_add           = ["NET_BIND_SERVICE"]
      cap_drop          = ["ALL"]
    }

    log {
      driver = "json-file"

      options = {
        max-size = "10m"
        max-file = "3"
      }
    }
  }

  container "idle" {
    image = "busybox:1"
    args  = ["sleep", "1000000"]

    lifecycle {
      post_start {
        http {
          port = 8080
          path = "/health"
        }
      }

      pre_stop {
        sleep {
          duration = "100ms"
        }
      }
    }
  }
}
