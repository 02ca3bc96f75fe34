import { writeSync } from 'node:fs'
import { behaviourMutants } from './behaviour-mutants.js'
import { configMutants } from './config-mutants.js'
import { equivalents } from './equivalents.js'
import { openSurvivors } from './open-survivors.js'
import { whatCatches } from './catch.js'

/**
 * One of `shards` processes that share the mutants. Writes a line of JSON a mutant: `{ name, caughtBy, excuse, isOpen }`,
 * where `caughtBy` is null for a survivor, `excuse` says why one changes nothing, and `isOpen` that it is known to
 * survive.
 */
const [shard = 0, shards = 1] = process.argv.slice(2).map(Number)
const mutants = [...configMutants(), ...behaviourMutants()]
const names = new Set(mutants.map(({ name }) => name))

for (const [i, { name, machine }] of mutants.entries()) {
  if (i % shards !== shard) continue
  // oxlint-disable-next-line no-await-in-loop -- one after the other: each needs a core of its own
  const caughtBy = await whatCatches(machine)
  report({ name, caughtBy, excuse: equivalents[name] ?? null, isOpen: openSurvivors.has(name) })
}
if (shard === 0) {
  for (const name of Object.keys(equivalents).filter((one) => !names.has(one))) {
    report({ name, caughtBy: 'nothing: there is no such mutant any more', excuse: equivalents[name] ?? null })
  }
}

function report(line: object): void {
  writeSync(1, `${JSON.stringify(line)}\n`)
}
