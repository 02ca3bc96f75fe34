import { readFileSync } from 'node:fs'
import { createMachine } from 'xstate'
import { agentMachine } from '../../machines/agent.machine.js'
import { listStateNodes, listTransitions, getStateName } from '../../src/core/chart/state-labels.js'
import { literalConfig } from './literal-config.js'

const source = readFileSync(new URL('../../machines/agent.machine.ts', import.meta.url), 'utf8')

describe('machines/agent.machine.ts, read by an editor', () => {
  const read = createMachine(literalConfig(source))

  it('has every state of the running machine', () => {
    expect(listStateNodes(read).map(getStateName)).toEqual(listStateNodes(agentMachine).map(getStateName))
  })

  it('has every transition of the running machine, with its guard and target', () => {
    const ids = (machine: typeof read | typeof agentMachine): string[] =>
      listTransitions(machine).map(({ declared }) => declared.id)
    expect(ids(read)).toEqual(ids(agentMachine))
    expect(ids(read).length).toBeGreaterThan(90)
  })

  it('invokes the same actors', () => {
    const actors = (machine: typeof read | typeof agentMachine): unknown[] =>
      listStateNodes(machine).flatMap(({ invoke }) => invoke.map(({ id, src }) => [id, src]))
    expect(actors(read)).toEqual(actors(agentMachine))
  })

  it('describes every state', () => {
    const silent = listStateNodes(read).filter(({ description }) => (description ?? '').length < 10)
    expect(silent.map(getStateName)).toEqual([])
  })
})

describe('code that no editor can read is found', () => {
  it.each([
    ['a spread', `createMachine({ states: { ...others } })`, /config\.states has a SpreadElement/],
    ['a computed key', `createMachine({ states: { [name]: {} } })`, /config\.states has a Computed/],
    ['a shorthand key', `createMachine({ states })`, /config has a Identifier/],
    ['a factory', `createMachine({ states: { a: waiting('b') } })`, /config\.states\.a is a CallExpression/],
    ['a constant', `createMachine({ initial: first })`, /config\.initial is a Identifier/],
    ['a template', 'createMachine({ initial: `a${1}` })', /config\.initial is a TemplateLiteral/],
    [
      'an inline guard',
      `createMachine({ always: { guard: () => true } })`,
      /config\.always\.guard is a function/,
    ],
    ['two machines', `createMachine({}); createMachine({})`, /2 calls/],
  ])('%s', (_, code, message) => {
    expect(() => literalConfig(code)).toThrow(message)
  })
})
