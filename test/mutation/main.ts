import { readFileSync, writeSync } from 'node:fs'
import { behaviourMutants } from './behaviour-mutants.js'
import { configMutants } from './config-mutants.js'
import { equivalents } from './equivalents.js'
import { findCatch, type Killer } from './catch.js'
import { findUnlawfulPath } from './judge.js'

/**
 * One of `shards` processes that share the mutants, or the mutants whose names match a pattern. Writes one JSON line per mutant: `{
 * name, caughtBy, excuse }`. `caughtBy` is null for a survivor. `excuse` is the reason for an equivalent mutant.
 */
const [shard, shards, killers = '', extent, pattern = ''] = process.argv.slice(2)
const isWhole = extent === 'whole'
const known = JSON.parse(readFileSync(killers, 'utf8')) as Record<
  string,
  Killer & { unlawful?: string | null }
>
const all = [...configMutants(), ...behaviourMutants()]
const names = new Set(all.map(({ name }) => name))
const mutants = all.filter(({ name }) => new RegExp(pattern).test(name))

for (const [i, { name, machine }] of mutants.entries()) {
  if (i % Number(shards) !== Number(shard)) continue
  const found = await findCatch(machine, { last: known[name], isExcused: name in equivalents, isWhole })
  // Null means that it passes all paths. Only the full search retries them.
  const last = name in equivalents ? null : known[name]?.unlawful
  const unlawful = findUnlawfulPath(machine, isWhole ? undefined : last)
  report({ name, caughtBy: null, killer: null, ...found, excuse: equivalents[name] ?? null, unlawful })
}
if (shard === '0') {
  for (const name of Object.keys(equivalents).filter((one) => !names.has(one))) {
    report({ name, caughtBy: 'nothing: there is no such mutant any more', excuse: equivalents[name] ?? null })
  }
}

function report(line: object): void {
  writeSync(1, `${JSON.stringify(line)}\n`)
}
