// The part of jest that long suites use, in plain Node: see plain.mjs. `expect` and `spyOn` come from jest.
import { format, inspect } from 'node:util'
import { expect } from 'expect'
import { ModuleMocker } from 'jest-mock'

const tests = []
const names = []
const hooks = { beforeAll: [], beforeEach: [], afterEach: [], afterAll: [] }
let timeoutMs = 20_000

const add = (name) => (hook) => hooks[name].push(hook)
const [beforeAll, beforeEach, afterEach, afterAll] = Object.keys(hooks).map(add)

function describe(name, body) {
  names.push(name)
  body()
  names.pop()
}

function test(name, body, ms) {
  tests.push({ name: [...names, name].join(' › '), body, ms })
}

/** A row is an argument list or a single argument. The name uses as many as it has placeholders. */
const each = (define) => (rows) => (name, body, ms) => {
  for (const row of rows) {
    const values = Array.isArray(row) ? row : [row]
    const places = name.match(/%[sdifjoO]/g)?.length ?? 0
    define(format(name, ...values.slice(0, places)), () => body(...values), ms)
  }
}
describe.each = each(describe)
test.each = each(test)
test.skip = () => undefined

const mocker = new ModuleMocker(globalThis)
const jest = {
  setTimeout: (ms) => void (timeoutMs = ms),
  spyOn: (...args) => mocker.spyOn(...args),
}

Object.assign(globalThis, { beforeAll, beforeEach, afterEach, afterAll, describe, test, it: test, expect })

// For '@jest/globals'.
export { afterAll, afterEach, beforeAll, beforeEach, describe, expect, jest, test }

/** Rejects after a timeout. */
async function within(ms, body) {
  let timer
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`It takes longer than ${ms} ms.`)), ms)
  })
  try {
    await Promise.race([body(), late])
  } finally {
    clearTimeout(timer)
  }
}

async function call(list) {
  for (const hook of list) await hook()
}

/** Runs the tests of a file in order, and reports failures. */
export async function runTests(file) {
  let failed = 0
  await call(hooks.beforeAll)
  for (const { name, body, ms = timeoutMs } of tests) {
    try {
      await within(ms, async () => {
        await call(hooks.beforeEach)
        try {
          await body()
        } finally {
          await call(hooks.afterEach)
        }
      })
    } catch (error) {
      failed += 1
      console.error(`FAIL ${file}\n  ● ${name}\n\n${inspect(error)}\n`)
    }
  }
  await call(hooks.afterAll)
  if (tests.length === 0) console.error(`FAIL ${file}: it has no tests.`)
  console.log(`${file}: ${tests.length - failed} passed, ${failed} failed`)
  process.exitCode = failed > 0 || tests.length === 0 ? 1 : 0
}
