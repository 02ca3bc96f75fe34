import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { AnyEventObject, AnyStateMachine } from 'xstate'
import * as core from '../../src/index.js'
import * as durable from '../../src/durable/index.js'
import * as rehearsal from '../../src/rehearsal/index.js'
import * as files from '../../src/stores/file/index.js'
import {
  canReach,
  checkProperties,
  generatePaths,
  isFinal,
  leadsTo,
  type Moment,
} from '../../src/testing/index.js'
import { loadExample, provideEntries } from '../support/entries.js'
// @ts-expect-error -- the file has no types
import * as example from '../../examples/claim.machine.mjs'

const {
  default: machine,
  inputs,
  alphabet,
} = example as {
  default: AnyStateMachine
  inputs: Record<string, unknown>
  alphabet: Record<string, AnyEventObject>
}
const space = { inputs: inputs as never, alphabet }

test('paths cover every transition of the claim', () => {
  const { coverage } = generatePaths(machine, space)
  expect(coverage.transitions.filter(({ count }) => count === 0).map(({ id }) => id)).toEqual([])
  expect(coverage.states.filter(({ reached }) => !reached)).toEqual([])
})

test('a payment in doubt is eventually resolved, and a chart that pays again is detected', () => {
  const isPaying = ({ value }: Moment) => value === 'paying' || value === 'checking' || value === 'waiting'
  const properties = {
    'a payment is decided in the end': leadsTo(isPaying, (moment: Moment) => !isPaying(moment), {
      fair: ['xstate.*'],
    }),
    'there is a way to an end': canReach(isFinal),
  }
  const held = (checked: AnyStateMachine) =>
    Object.values(checkProperties(checked, properties, space)).map(({ holds }) => holds)
  expect(held(machine)).toEqual([true, true])
  const endless = machine.provide({
    guards: { mayRetry: () => true },
    actions: { countFailure: () => undefined },
  })
  expect(held(endless)).toEqual([false, true])
})

test('examples/claim.mjs settles the claim, and a second run pays nothing', async () => {
  provideEntries({
    statewright: core,
    'statewright/durable': durable,
    'statewright/rehearsal': rehearsal,
    'statewright/stores/file': files,
  })
  const dir = await mkdtemp(join(tmpdir(), 'statewright-claim-'))
  try {
    const { settleClaim } = await loadExample<{ settleClaim: (dir: string) => Promise<string[]> }>(
      'claim.mjs',
    )
    expect(await settleClaim(dir)).toEqual([
      'reviewing SIMPLE',
      'closed claim-17:pay.3 Dear customer, your claim is paid.',
    ])
    expect((await settleClaim(dir)).at(-1)).toBe('closed claim-17:pay.3 Dear customer, your claim is paid.')
    expect(await readFile(join(dir, 'bank.txt'), 'utf8')).toBe('claim-17:pay.3 900\n')
  } finally {
    await rm(dir, { recursive: true, force: true })
  }
})
