import { memoryStore, type SessionStore, StoreError } from '../../src/index.js'
import type { World } from './world.js'

type Method = 'acquire' | 'renew' | 'release' | 'append' | 'read'

const methods: readonly Method[] = ['acquire', 'renew', 'release', 'append', 'read']

/** Possible store behaviors. `none` means that the agent has no store. */
export const storeNames = [
  'none',
  'memory',
  'answers by promises',
  'is slow',
  'throws once',
  'rejects once',
  'throws junk once',
  'fails for good',
  'writes and fails all the same',
  'never settles',
] as const

export type StoreName = (typeof storeNames)[number]

/** An in-memory store that fails as configured, starting at a random call. */
export function storeOf(name: StoreName, world: World): SessionStore | undefined {
  if (name === 'none') return undefined
  const inner = memoryStore({ now: () => world.now() })
  if (name === 'memory') return inner
  let calls = 0
  const from = 1 + world.below(12)
  const isDue = (): boolean => {
    calls += 1
    world.moves += 1
    if (world.calm) return false
    return name.endsWith('once') || name === 'writes and fails all the same' ? calls === from : calls >= from
  }
  const fault = () => new StoreError('store_unavailable', 'The store is gone.')
  const failing = (method: Method, args: unknown[]): unknown => {
    const apply = () => (inner[method] as (...all: unknown[]) => unknown).apply(inner, args)
    const isFaulty = isDue()
    switch (name) {
      case 'answers by promises':
        return Promise.resolve().then(apply)
      case 'is slow':
        return world.wait(world.calm ? 1 : 50 + world.below(2_000)).then(apply)
      case 'throws once':
        if (isFaulty) throw fault()
        return apply()
      case 'throws junk once':
        // oxlint-disable-next-line no-throw-literal only-throw-error -- a store may throw anything
        if (isFaulty) throw 'junk'
        return apply()
      case 'writes and fails all the same':
        return Promise.resolve(apply()).then((value) => (isFaulty ? Promise.reject(fault()) : value))
      case 'never settles':
        return isFaulty ? world.hang() : Promise.resolve().then(apply)
      default:
        return isFaulty ? Promise.reject(fault()) : Promise.resolve().then(apply)
    }
  }
  const faulty = Object.fromEntries(
    methods.map((method) => [method, (...args: unknown[]) => failing(method, args)]),
  )
  return { ...inner, ...faulty } as SessionStore
}
