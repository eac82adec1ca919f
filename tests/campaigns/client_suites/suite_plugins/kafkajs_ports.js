// A set-up file of jest: the tests of kafkajs connect to fixed ports, and here to those that the environment names.

const net = require('net')
const tls = require('tls')

const ports = JSON.parse(process.env.KAFKA_MSGS_SUITE_PORTS)

for (const module of [net, tls]) {
  const connect = module.connect.original || module.connect
  module.connect = (options, ...more) => connect({ ...options, port: ports[options.port] || options.port }, ...more)
  module.connect.original = connect
}
