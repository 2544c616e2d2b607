#!/bin/sh
# What docker/compose.yaml needs and everybody else must not have: passwords and the operator's key in FOLDER/.env, an
# authority and the engines' certificates in FOLDER/secrets. FOLDER is this script's unless another one is named. What is there
# stays: remove a line or a file to have it made again, then `docker compose up -d` again.
#   ./docker/make-secrets.sh [FOLDER]
set -eu
umask 077
folder=$(cd "${1:-$(dirname "$0")}" && pwd)
cd "$folder"
touch .env
secret() {
  if ! grep -q "^$1=" .env; then echo "$1=$2" >> .env; fi
}
random() { openssl rand -hex 32; }
secret COUCHDB_PASSWORD "$(random)"
secret COUCHDB_INVOKER_PASSWORD "$(random)"
secret KAFKA_PASSWORD "$(random)"
secret REDIS_PASSWORD "$(random)"
digits=$(openssl rand -hex 16 | sed 's/^\(.\{8\}\)\(.\{4\}\)\(.\{4\}\)\(.\{4\}\)\(.\{12\}\)$/\1-\2-\3-\4-\5/')
secret OPERATOR_KEY "$digits:$(random)"
secret SECRETS_FOLDER "$folder/secrets"

# Only the owner gets into the folder. Files in it are readable: each container's own user reads the one that it is given.
mkdir -p secrets
cd secrets
if [ ! -e ca.crt ]; then
  openssl req -x509 -newkey rsa:3072 -nodes -days 3650 -subj /CN=gpuwhisk -addext keyUsage=critical,keyCertSign,cRLSign \
    -keyout ca.key -out ca.crt 2> /dev/null
fi
for name in couchdb kafka redis; do
  if [ -e "$name.crt" ]; then continue; fi
  openssl req -newkey rsa:2048 -nodes -subj "/CN=$name" -keyout "$name.key" -out "$name.csr" 2> /dev/null
  echo "subjectAltName=DNS:$name" > "$name.ext"
  openssl x509 -req -in "$name.csr" -CA ca.crt -CAkey ca.key -set_serial "0x$(openssl rand -hex 16)" -days 3650 \
    -extfile "$name.ext" -out "$name.crt" 2> /dev/null
  rm "$name.csr" "$name.ext"
done
cat kafka.key kafka.crt > kafka.pem
chmod 644 ca.crt couchdb.key couchdb.crt kafka.pem redis.key redis.crt
