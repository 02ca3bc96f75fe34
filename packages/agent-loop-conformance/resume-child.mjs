// One process of a `resume` case. It runs the adapter with its state in a folder, and kills itself before or after one of the
// writes. Task: `{ adapter, variant, baseURL, folder, killAt, goesOn, mistake, asks, approves }`. With `asks`, the tool needs an
// approval; with `approves`, the process approves every call.
import { appendFileSync } from 'node:fs'
import { join } from 'node:path'

const { adapter, killAt, goesOn, asks, approves, ...options } = JSON.parse(process.argv[2])
// The output of a library goes to stderr.
console.log = console.error

let writes = 0
const die = () => process.kill(process.pid, 'SIGKILL')

/** Counts a write of the library. The process can die right before it or right after it. */
function writing(write) {
  writes++
  if (killAt === `before ${writes}`) die()
  const result = write()
  if (killAt === `after ${writes}`) die()
  return result
}

/** A tool with an effect that no stored record can undo. */
const send = {
  name: 'send',
  description: 'Sends an invoice.',
  fields: { to: 'string' },
  asks,
  execute({ to }) {
    appendFileSync(join(options.folder, 'effects'), `${to}\n`)
    return `sent to ${to}`
  },
}

const { openStored } = await import(adapter)
const stored = await openStored({ ...options, tools: [send], writing })
const approveAll = async (rest) =>
  rest.pending?.length > 0 ? approveAll(await stored.approve(rest.pending)) : rest
const first = await (goesOn ? stored.goOn() : stored.start('Go.'))
const { text, ok, ended, pending } = approves ? await approveAll(first) : first
process.send({ text, ok, ended, asked: pending?.length ?? 0 }, () => process.exit(0))
