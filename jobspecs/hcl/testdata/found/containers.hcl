statefulset "web" {
  volume "data" {}
  scratch "data" {
    medium = "memroy"
  }
  bind "certs" { source = "certs" }

  init "prepare" {
    image = "Busybox:1"
    probe "readiness" {
      exec { command = ["true"] }
    }
    port "x" { container = 80 }
  }

  sidecar "previous" { image = "x" }

  container "prepare" {
    image     = "x"
    preStop   = ["true"]
    ulimits   = { nofil = 5, nofile = "7:5" }
    resources = {}

    mount "data" { path = "/proc" }
    mount "certs" {
      path     = "/certs"
      sub_path = "a"
    }
    file "/etc/hosts" { content = "" }

    probe "role" {
      http { port = 80 }
    }
    probe "startup" {
      log { pattern = "[" }
      period = "10ms"
    }

    lifecycle {
      pre_stop {
        sleep { duration = "5" }
        exec { command = [] }
      }
    }

    security {
      fs_group = "wheel"
      cap_add  = ["CAP_SYS_ADMN"]
      runAsUser = 5
    }
    registry_auth { username = "ci" }
  }
}
