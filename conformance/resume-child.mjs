// One process of a case of resume: it runs the loop of a library with its state in a folder, and dies by SIGKILL before or after one of
// its writes. `{ name, column, baseURL, folder, killAt, goesOn, mistake, asks, approves }`: with `asks`, its tool asks a person; with
// `approves`, it brings a yes to every question.
import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import { resolvePeers } from './resolve-peers.mjs'

const { name, killAt, goesOn, asks, approves, ...given } = JSON.parse(process.argv[2])
// What libraries print is for people.
console.log = console.error

let writes = 0
const die = () => process.kill(process.pid, 'SIGKILL')

/** A library writes: the process may die right before it, with all that was done since the last write, or right after it. */
function writing(write) {
  writes++
  if (killAt === `before ${writes}`) die()
  const told = write()
  if (killAt === `after ${writes}`) die()
  return told
}

/** What it does in the world, which no record can take back. */
const send = {
  name: 'send',
  description: 'Sends an invoice.',
  fields: { to: 'string' },
  asks,
  execute({ to }) {
    appendFileSync(join(given.folder, 'effects'), `${to}\n`)
    return `sent to ${to}`
  },
}

if (!['statewright', 'right', 'wrong'].includes(name)) resolvePeers()
const { openStored } = await import(`./adapters/${name === 'wrong' ? 'right' : name}-stored.mjs`)
const stored = await openStored({ ...given, tools: [send], writing })
const approveAll = async (told) =>
  told.pending?.length > 0 ? approveAll(await stored.approve(told.pending)) : told
const first = await (goesOn ? stored.goOn() : stored.start('Go.'))
const { text, ok, ended, pending } = approves ? await approveAll(first) : first
process.send({ text, ok, ended, asked: pending?.length ?? 0 }, () => process.exit(0))
