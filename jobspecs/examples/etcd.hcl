# etcd: three members that form a cluster together, and need each other to become ready: so they start side by side. A
# member without data, new or with its volume lost, joins the cluster that is there; one that goes is taken off its list.

variable "image" {
  type        = string
  default     = "etcd:3"
  description = "what to run: etcd, etcdctl and a shell"
}

statefulset "etcd" {
  replicas       = 3
  pod_management = "parallel"

  locals {
    peer_url = "http://${self.fqdn}:2380"
    cluster  = join(",", [for m in set.members : "${m.name}=http://${m.fqdn}:2380"])
    peers    = join(",", [for p in set.peers : "http://${p.fqdn}:2379"])
  }

  guard {
    min_available = floor(set.replicas / 2) + 1 # a quorum
  }

  volume "data" {
    size          = "4GiB"
    on_scale_down = "delete" # the data of a member that left is of no use: it can never come back with it
  }

  hook "forget" {
    on      = "leave"
    ordinal = 0
    command = ["/forget", local.peer_url]
  }

  container "etcd" {
    image   = var.image
    command = ["/start"]

    env = {
      ETCD_NAME                        = self.name
      ETCD_DATA_DIR                    = "/data/etcd"
      ETCD_LISTEN_PEER_URLS            = "http://0.0.0.0:2380"
      ETCD_LISTEN_CLIENT_URLS          = "http://0.0.0.0:2379"
      ETCD_ADVERTISE_CLIENT_URLS       = "http://${self.fqdn}:2379"
      ETCD_INITIAL_ADVERTISE_PEER_URLS = local.peer_url
      ETCD_INITIAL_CLUSTER             = local.cluster
      ETCD_INITIAL_CLUSTER_STATE       = "new"
    }

    port "client" {
      container = 2379
    }

    port "peer" {
      container = 2380
    }

    mount "data" {
      path = "/data"
    }

    # What etcdctl says to no avail ends the container, and the next one tries again.
    file "/start" {
      mode    = "0755"
      content = <<-EOT
        #!/bin/sh
        set -e
        if ${set.formed} && [ ! -d "$ETCD_DATA_DIR/member" ]; then
          export ETCDCTL_ENDPOINTS=${local.peers}
          /forget ${local.peer_url}
          etcdctl member add ${self.name} --peer-urls ${local.peer_url} >/tmp/added
          sed -n 's/^ETCD_/export &/p' /tmp/added >/tmp/join # ETCD_INITIAL_CLUSTER and its state, as they are now
          . /tmp/join
        fi
        exec etcd
      EOT
    }

    file "/forget" {
      mode    = "0755"
      content = <<-EOT
        #!/bin/sh
        # forget URL takes the member with this peer URL off the cluster's list.
        set -e
        list=`etcdctl member list`
        id=`echo "$list" | awk -F ', ' -v url="$1" '$4 == url { print $1 }'`
        [ -z "$id" ] || etcdctl member remove "$id"
      EOT
    }

    probe "readiness" { # true only with a quorum
      http {
        port = "client"
        path = "/health"
      }

      period  = "2s"
      timeout = "2s"
    }
  }
}
