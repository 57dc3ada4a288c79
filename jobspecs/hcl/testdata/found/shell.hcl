statefulset "web" {
  replicas = 2
  container "web" {
    image   = "x"
    command = ["sh", "-c", "exec srv --id=${HOSTNAME##*-} --p=${PORT:-80} $(POD_NAME)"]
    env = { A = "${HOSTNAME}" }
  }
}
