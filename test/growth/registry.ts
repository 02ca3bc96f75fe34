import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { rules } from '../../guards/roster.js'
import { type ModelProvider, createAgent, memoryStore } from '../../src/index.js'
import { createBudget, createLimiter } from '../../src/fleet/index.js'
import { Run } from '../../src/core/run/run.js'
import { piiKinds } from '../../src/core/shields/pii.js'
import { secretKinds } from '../../src/core/shields/secrets.js'
import { pageRoutes, studioRoutes } from '../support/routes.js'

const root = join(import.meta.dirname, '../..')

interface Package {
  exports: Record<string, string | { default: string }>
}

/** `statewright/ui toUIMessages` for each function that users import. Excludes error classes. */
async function exportedFunctions(): Promise<string[]> {
  const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Package
  const entries = Object.entries(exports).flatMap(([name, to]) =>
    typeof to === 'string' ? [] : [[name, to.default] as const],
  )
  const found: string[] = []
  for (const [name, path] of entries) {
    const module = (await import(path.replace('./dist/src', '../../src'))) as Record<string, unknown>
    const functions = Object.entries(module).filter(
      ([, value]) => typeof value === 'function' && !(value.prototype instanceof Error),
    )
    found.push(...functions.map(([key]) => `${name.replace(/^\./, 'statewright')} ${key}`))
  }
  return found
}

const model: ModelProvider = {
  provider: 'none',
  model: 'none',
  request: () => Promise.reject(new Error('It is not asked.')),
}

/** All operations on external text, history, records or messages that the code itself can list. */
export async function subjects(): Promise<string[]> {
  const store = memoryStore()
  const named = (kind: string, keys: Iterable<string>) => Array.from(keys, (key) => `${kind} ${key}`)
  return [
    ...(await exportedFunctions()),
    ...named(
      'guard',
      rules.map(([key]) => key),
    ),
    ...named('secret', secretKinds),
    ...named('personal data', piiKinds),
    ...named('store', functionsOf(store)),
    ...named('inbox', functionsOf(store.inbox)),
    ...named('timers', functionsOf(store.timers)),
    ...named('budgets', functionsOf((await store.openBudgets?.()) ?? {})),
    ...named('budget', functionsOf(createBudget({ id: 'b', tokens: 1, store }))),
    ...named('limiter', functionsOf(createLimiter({ id: 'l', concurrency: 1 }))),
    ...named('agent', functionsOf(createAgent({ model, store }))),
    ...named('run', methodsOf(Run)),
    ...named('studio', studioRoutes),
    ...named('chat', Object.keys(pageRoutes)),
  ]
}

function functionsOf(value: object): string[] {
  return Object.entries(value).flatMap(([key, one]) => (typeof one === 'function' ? [key] : []))
}

function methodsOf({ prototype }: { prototype: object }): string[] {
  return Object.entries(Object.getOwnPropertyDescriptors(prototype)).flatMap(([key, { value }]) =>
    typeof value === 'function' && key !== 'constructor' ? [key] : [],
  )
}
