import assert from 'node:assert/strict'
import test from 'node:test'
import { parseDuration } from '../src/duration.mjs'

await test('one unit', () => {
  assert.equal(parseDuration('90s'), 90_000)
  assert.equal(parseDuration('2h'), 7_200_000)
})

await test('several units', () => {
  assert.equal(parseDuration('1h30m'), 5_400_000)
})
