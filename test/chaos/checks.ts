import type { World } from './world.js'

type Check = (world: World, signal: AbortSignal | undefined, content: string) => unknown

/** The behavior of an external verdict or content source: a shield, a guard, memory, an approver. */
export const checks = {
  'lets pass': () => ({ action: 'allow' }),
  'takes its time': async (world) => {
    await world.wait(800)
    return { action: 'allow' }
  },
  warns: () => ({ action: 'warn', message: 'Careful.' }),
  redacts: (_world, _signal, content) => ({ action: 'redact', content: `${content.slice(0, 3)}[…]` }),
  blocks: () => ({ action: 'block', message: 'Not here.' }),
  throws: () => {
    throw new Error('The check failed.')
  },
  // oxlint-disable-next-line prefer-promise-reject-errors -- anything may be thrown
  'rejects with nothing': () => Promise.reject(undefined),
  'returns junk': (world) =>
    world.pick<unknown>([null, 7, 'allow', {}, { action: 'explode' }, [], { action: 'redact' }]),
  hangs: (world, signal) => world.hang(signal),
  'hangs and is deaf': (world) => world.hang(),
} satisfies Record<string, Check>

export type CheckName = keyof typeof checks

export const checkNames = Object.keys(checks) as CheckName[]
