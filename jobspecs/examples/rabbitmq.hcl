# RabbitMQ: three nodes that find each other by name. They form their cluster one after the other, and come back side by
# side: a node that was ended waits at its start for those that ran when it did, whichever they are. The user is
# "app"; its password is in /etc/rabbitmq/rabbitmq.conf of every member.

variable "image" {
  type        = string
  default     = "rabbitmq:3"
  description = "what to run"
}

secret "cookie" {} # nodes and rabbitmqctl know each other by it

secret "password" {}

statefulset "rabbitmq" {
  replicas          = 3
  termination_grace = "1m" # time to hand queues over

  volume "data" {
    size = "4GiB"
  }

  hook "leave" { # it gives up its queues and its data
    on      = "leave"
    timeout = "5m"
    command = ["sh", "-c", "rabbitmq-queues shrink $RABBITMQ_NODENAME && rabbitmqctl stop_app && rabbitmqctl reset"]
  }

  container "rabbitmq" {
    image = var.image

    env = {
      RABBITMQ_USE_LONGNAME = "true"
      RABBITMQ_NODENAME     = "rabbit@${self.fqdn}"
    }

    port "amqp" {
      container = 5672
    }

    port "management" {
      container = 15672
    }

    mount "data" {
      path = "/var/lib/rabbitmq"
    }

    file "/var/lib/rabbitmq/.erlang.cookie" {
      mode    = "0400"
      owner   = "999:999"
      content = secret.cookie
    }

    file "/etc/rabbitmq/enabled_plugins" {
      content = "[rabbitmq_management]."
    }

    file "/etc/rabbitmq/rabbitmq.conf" {
      owner   = "999:999"
      mode    = "0400"
      content = <<-EOT
        cluster_formation.peer_discovery_backend = classic_config
        %{for m in set.members~}
        cluster_formation.classic_config.nodes.${m.index + 1} = rabbit@${m.fqdn}
        %{endfor~}
        cluster_partition_handling = pause_minority
        default_user = app
        default_pass = ${secret.password}
      EOT
    }

    probe "readiness" { # the last thing that a node opens
      tcp {
        port = "amqp"
      }

      period = "5s"
    }
  }
}
