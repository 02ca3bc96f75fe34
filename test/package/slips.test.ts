import { readFileSync } from 'node:fs'
import { StatewrightError } from '../../src/core/base/errors.js'
import { ModelError } from '../../src/index.js'
import { entries, root } from '../types/declarations.js'

/** What a user of JavaScript passes by mistake. */
const slips: Readonly<Record<string, readonly unknown[]>> = {
  nothing: [],
  null: [null],
  'a text': ['text'],
  'a number': [7],
  'a function': [() => 1],
  'a wrong object': [{ wrong: true }],
  'an empty list': [[]],
  'a list of texts': [['text']],
  'a promise that was not awaited': [Promise.resolve({})],
  'two nulls': [null, null],
  'two texts': ['text', 'text'],
  'an object and null': [{}, null],
  'arguments swapped': [{}, 'text'],
}

/** Exports that are not asked, and why. */
const exempt: Readonly<Record<string, string>> = {
  BlockedError: 'orThrow makes it',
  BudgetExceededError: 'orThrow makes it',
  CancelledError: 'orThrow makes it',
  GuardrailError: 'orThrow makes it',
  InvalidOutputError: 'orThrow makes it',
  MaxStepsError: 'orThrow makes it',
  NotFinishedError: 'orThrow makes it',
  ProviderError: 'orThrow makes it',
  RunError: 'orThrow makes it',
  TimedOutError: 'orThrow makes it',
  ModelError: 'an error that explains another one must not hide it',
  getCacheHitRate: 'it is a part of the machine, which throws nothing of its own',
  toSvg: 'it loads a peer that draws; what it takes is checked before',
  startInspector: 'it would listen on a port',
}

type Exported = [entry: string, name: string, of: (...args: unknown[]) => unknown, isClass: boolean]

const exported: Exported[] = []
for (const [entry, file] of Object.entries(entries)) {
  const all = (await import(root + file)) as Record<string, unknown>
  for (const [name, of] of Object.entries(all)) {
    if (typeof of === 'function')
      exported.push([entry, name, of as Exported[2], /^class\b/.test(Function.prototype.toString.call(of))])
  }
}

it('every entry point of the package is looked at', () => {
  const { exports } = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as {
    exports: Record<string, unknown>
  }
  const paths = Object.keys(exports).filter((path) => !path.endsWith('.json'))
  expect(paths.map((path) => `statewright${path.slice(1)}`).toSorted()).toEqual(
    Object.keys(entries).toSorted(),
  )
})

it('what is exempt is exported', () => {
  const names = exported.map(([, name]) => name)
  expect(Object.keys(exempt).filter((name) => !names.includes(name))).toEqual([])
})

const asked = exported.filter(([, name]) => !Object.hasOwn(exempt, name))

it.each(asked)('%s: %s answers a slip with a typed error, or takes it', async (_entry, name, of, isClass) => {
  const raw: string[] = []
  for (const [slip, args] of Object.entries(slips)) {
    try {
      const made: unknown = isClass ? Reflect.construct(of, args) : of(...args)
      // oxlint-disable-next-line no-await-in-loop -- one slip after the other
      await made
    } catch (error) {
      const isTyped =
        (error instanceof StatewrightError && error.message !== '') || error instanceof ModelError
      if (!isTyped) raw.push(`${name}(${slip}): ${String(error)}`)
    }
  }
  expect(raw).toEqual([])
})
