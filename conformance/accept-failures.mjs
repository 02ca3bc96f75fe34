// Marks the failures of a run as expected. Keeps the notes of failures that were already expected.
import { readFileSync, writeFileSync } from 'node:fs'
import { cases } from '../packages/agent-loop-conformance/cases/index.mjs'

const file = new URL('./expected.json', import.meta.url)

/** Also updates the report, because its failures are expected from then on. */
export function acceptFailures({ results }) {
  const before = JSON.parse(readFileSync(file, 'utf8'))
  const played = new Set(results.map((one) => `${one.peer} ${one.variant} ${one.case}`))
  const now = {}
  const keep = (peer, variant, id, note) => {
    now[peer] ??= {}
    now[peer][variant] ??= {}
    now[peer][variant][id] = note
  }
  for (const [peer, variants] of Object.entries(before))
    for (const [variant, notes] of Object.entries(variants))
      for (const [id, note] of Object.entries(notes))
        if (!played.has(`${peer} ${variant} ${id}`)) keep(peer, variant, id, note)
  for (const one of results) {
    if (one.result !== 'fail' && one.result !== 'expected_fail') continue
    one.result = 'expected_fail'
    keep(one.peer, one.variant, one.case, before[one.peer]?.[one.variant]?.[one.case] ?? '')
  }
  const order = new Map(cases.map(({ id }, at) => [id, at]))
  for (const variants of Object.values(now))
    for (const [variant, notes] of Object.entries(variants))
      variants[variant] = Object.fromEntries(
        Object.entries(notes).toSorted(([a], [b]) => order.get(a) - order.get(b)),
      )
  writeFileSync(file, `${JSON.stringify(now, null, 2)}\n`)
}
