/** npm start: the service, until SIGTERM or Ctrl-C. */
import { randomBytes } from 'node:crypto'
import { startService } from './service.js'

const { DATABASE_URL, SERVICE_TOKEN, PORT = '3000', HOST } = process.env
if (!DATABASE_URL) {
  console.error(
    'Set a Postgres URL: DATABASE_URL=postgres://USER:PASSWORD@HOST/DATABASE npm start\n' +
      'docker compose up starts one, with the service and a page for its traces.',
  )
  process.exit(2)
}
const token = SERVICE_TOKEN || randomBytes(16).toString('hex')
const service = await startService({
  databaseUrl: DATABASE_URL,
  token,
  port: Number(PORT),
  ...(HOST && { host: HOST }),
})
console.log(`The service is listening on ${service.url}.`)
if (!SERVICE_TOKEN) {
  console.log(`SERVICE_TOKEN is not set, so this process created one: ${token}
`)
  console.log(
    `curl ${service.url}/sessions -H 'authorization: Bearer ${token}' -H 'content-type: application/json' ` +
      `-d '{"session":"invoice-17","input":"Pay invoice 17."}'`,
  )
  console.log(`curl ${service.url}/sessions/invoice-17 -H 'authorization: Bearer ${token}'`)
}
for (const signal of ['SIGTERM', 'SIGINT'] as const)
  process.once(signal, () => void service.stop().then(() => process.exit(0)))
