variable "image" { # -var image=…, --var-file F, STSD_VAR_image; one not given again keeps its stored value
  type        = string
  default     = "redis:7"
  description = "what to run"
  sensitive   = false # true: shown as (sensitive) everywhere

  validation {
    condition     = var.image != ""
    error_message = "An image is needed."
  }
}

variable "password" {
  default = "hidden"
}

locals {
  data = "/data"
}

secret "cookie" { # made once per namespace by the daemon, kept until `stsd secret rm`; `secret.cookie` in expressions
  length = 32
  format = "hex" # "base64url", "uuid"
}

statefulset "redis" {
  namespace              = "default"
  replicas               = 3 # absent: the stored count, 1 for a new set
  start_ordinal          = 0
  reserve                = [] # ordinals that are left out
  service                = "redis"
  pod_management         = "ordered" # "parallel"
  recovery_wait          = "0s"      # stagger between members that come back after a reboot
  revision_history_limit = 10
  termination_grace      = "30s"
  start_after            = ["etcd"]          # sets that must be available before this one's first start
  networks               = ["myapp_default"] # Docker networks to join as well, with the members' names as aliases
  share_processes        = false             # one process namespace for all containers of a pod
  labels                 = {}
  extra_hosts            = {}
  sysctls                = {} # net.* of the pod

  locals { # may use self and set
    others = join(",", set.peers[*].fqdn)
  }

  update {
    strategy        = "rolling"    # "on_delete"
    partition       = 0            # ordinals below it keep the old revision: a canary
    max_unavailable = 1            # or "30%"
    min_ready       = "0s"         # ready for this long counts as available
    deadline        = "10m"        # per member, pull and init progress not counted; "0s" = none
    on_failure      = "pause"      # "rollback", "wait"
    order           = "descending" # "role": by the role probe, `last` goes last
    last            = ""
  }

  guard {
    min_available = floor(set.replicas / 2) + 1
  }

  dns {
    member_names = "always" # "running", "ready"
    set_name     = "peers"  # "ready", "running"
    ttl          = "5s"
    negative_ttl = "2s"
  }

  host_access {
    mode = "direct" # "loopback", "ports", "none"
  }

  volume "data" {          # one per ordinal, bound again for life
    size          = "1GiB" # a quota where the driver has one, else a watched limit with a warning
    driver        = "local"
    options       = {}       # may use self: /mnt/disk${self.ordinal}
    on_scale_down = "retain" # "delete"
    on_delete     = "retain" # "delete"
  }

  scratch "tmp" {     # lives as long as the pod
    medium = "memory" # "disk"
    size   = "64MiB"
  }

  bind "certs" { # a path of the host
    source    = "/etc/ssl/certs"
    read_only = true
  }

  init "prepare" { # runs to its end, in order, before the rest; same fields as container
    image = var.image
    args  = ["chown", "-R", "999", local.data]

    mount "data" {
      path = local.data
    }
  }

  sidecar "exporter" { # starts before the main containers, stops after them
    image = "redis-exporter:1"
  }

  hook "form" {              # runs in a container by exec, for membership only: never for a restart or an update
    on         = "set_ready" # "join", "leave"
    once       = true
    ordinal    = 0
    container  = "redis"
    timeout    = "1m"
    on_failure = "abort" # "continue"
    command    = ["redis-cli", "cluster", "info"]
  }

  container "redis" {
    image       = var.image
    pull        = "missing"                # "always", "never"
    command     = ["docker-entrypoint.sh"] # replaces the image's entrypoint
    args        = ["redis-server", "/etc/redis.conf"]
    working_dir = "/data"
    user        = "999:999"
    stop_signal = "SIGTERM"

    env = {
      MEMBER = self.name
    }

    ulimits = {
      nofile = 65536
    }

    registry_auth { # absent: the Docker client's own credentials
      username = "ci"
      password = var.password
    }

    port "client" {
      container = 6379
      protocol  = "tcp"
      host      = 6379 + self.ordinal # published, fixed per ordinal; absent: not published
      host_ip   = "127.0.0.1"
    }

    mount "data" {
      path      = local.data
      sub_path  = ""
      read_only = false
    }

    mount "tmp" {
      path = "/tmp"
    }

    mount "certs" {
      path = "/etc/ssl/certs"
    }

    file "/etc/redis.conf" { # rendered per ordinal
      mode      = "0644"
      owner     = "999:999" # absent: the container's user, else root
      sensitive = false
      content   = <<-EOT
        replica-announce-ip ${self.fqdn}
        ${self.ordinal == 0 ? "" : "replicaof ${set.first.fqdn} 6379"}
      EOT
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
        command = ["redis-cli", "ping"]
      }

      initial_delay     = "0s"
      period            = "10s"
      timeout           = "5s"
      success_threshold = 1
      failure_threshold = 3
    }

    probe "liveness" {
      http { # also grpc { port, service } and log { pattern }
        port    = 8080
        path    = "/health"
        scheme  = "http"
        headers = {}
      }
    }

    probe "role" { # its output is the member's role, shown by ps
      exec {
        command = ["redis-cli", "role"]
      }
    }

    lifecycle {
      post_start {
        exec {
          command = ["true"]
        }
      }

      pre_stop { # also http, sleep; inside the grace period
        exec {
          command = ["redis-cli", "save"]
        }
      }
    }

    restart {
      first   = "0s" # the first restart does not wait
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
      read_only_root    = false
      no_new_privileges = false
      run_as_non_root   = false
      fs_group          = 999 # group that owns the volumes, set once per volume
      cap_add           = []
      cap_drop          = []
    }

    log {
      driver = "json-file"
      options = {
        max-size = "10m"
        max-file = "3"
      }
    }
  }
}
