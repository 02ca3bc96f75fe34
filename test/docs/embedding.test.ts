import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { AnyStateNode } from 'xstate'
import { agentMachine } from '../../src/index.js'

const root = fileURLToPath(new URL('../..', import.meta.url))
const document = readFileSync(`${root}docs/embedding.md`, 'utf8')
/** One event per line, even if the formatter wrapped it. */
const source = readFileSync(`${root}machines/agent/context.ts`, 'utf8').replaceAll(
  /\{\n\s+type: [^{}]*\}/g,
  (event) => event.trim().replaceAll(/\s*\n\s*/g, ' '),
)

interface Row {
  keys: string[]
  heardIn: string[]
}

/** The table rows of the document whose first cell is an event name. */
const documented = new Map<string, Row>(
  Array.from(
    document.matchAll(/^\| `([A-Z_]+)` \|([^|]*)\|([^|]*)\|$/gm),
    ([, type = '', keys = '', states = '']) => [
      type,
      { keys: namesIn(keys), heardIn: states.trim() === 'every state' ? ['every state'] : namesIn(states) },
    ],
  ),
)

/** The events of the type, with their keys. A sentence documents the keys that the runtime adds. */
const declared = new Map<string, string[]>(
  Array.from(source.matchAll(/\| \{ type: '([A-Z_]+)'(.*) \}$/gm), ([, type = '', rest = '']) => [
    type,
    Array.from(rest.replaceAll(/\{[^}]*\}/g, '').matchAll(/(\w+\??):/g), ([, key = '']) => key).filter(
      (key) => key !== 'partial?',
    ),
  ]),
)

function namesIn(cell: string): string[] {
  return Array.from(cell.matchAll(/`([^`]+)`/g), ([, name = '']) => name)
}

/** The top-level states that contain a transition for the event. */
function heardIn(type: string): string[] {
  const { root: top } = agentMachine
  if (top.ownEvents.includes(type as never)) return ['every state']
  const hears = (node: AnyStateNode): boolean =>
    node.ownEvents.includes(type) || Object.values(node.states).some(hears)
  return Object.values(top.states as Record<string, AnyStateNode>)
    .filter(hears)
    .map(({ key }) => key)
}

describe('docs/embedding.md', () => {
  it('lists every event of the machine, and no other', () => {
    expect([...documented.keys()]).toEqual([...declared.keys()])
    expect(declared.size).toBeGreaterThan(10)
  })

  it.each([...declared])('names the payload of %s, and its listeners', (type, keys) => {
    expect(documented.get(type)).toEqual({ keys, heardIn: heardIn(type) })
  })

  it('lists every actor that the machine invokes, with its output', () => {
    const [, types = ''] = /interface ActorOutputs \{\n([^}]*)\}/.exec(source) ?? []
    const outputs = Array.from(
      types.matchAll(/(\w+): (\S+)/g),
      ([, id = '', output = '']) => [id, output] as const,
    )
    const silent = Array.from(source.matchAll(/'xstate\.done\.actor\.(\w+)'/g), ([, id = '']) => id)
    expect(silent).toEqual(['backOff', 'tools'])
    const [, table = ''] = document.split('| Actor | Task |')
    const named = Array.from(table.matchAll(/^\|((?: `\w+`)+) \|/gm), ([, cell = '']) => namesIn(cell)).flat()
    expect(named.toSorted()).toEqual([...outputs.map(([id]) => id), ...silent].toSorted())
    for (const [id, output] of outputs) {
      const row = table.split('\n').find((line) => line.includes(`\`${id}\``)) ?? ''
      if (!id.endsWith('Shields')) expect(row).toContain(`\`${output}\``)
    }
  })

  it('names the actors whose errors are retried', () => {
    const [, retried = ''] = /Only failures of (.+) are retried/.exec(source) ?? []
    const rows = document.split('\n').filter((line) => line.includes('or an error'))
    expect(rows.flatMap((row) => namesIn(row.split('|')[1] ?? ''))).toEqual(namesIn(retried))
  })
})
