import { createHash } from 'node:crypto'
import * as fc from 'fast-check'
import { portableSha256, sha256 } from '../../guards/lib/sha256.js'

test('the digest matches the known SHA-256 values', () => {
  const empty = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'
  expect(sha256('')).toBe(empty)
  expect(portableSha256('')).toBe(empty)
  const abc = 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad'
  expect(portableSha256('abc')).toBe(abc)
})

test('the digest matches at every length up to three blocks, with two and three bytes per letter', () => {
  for (const letter of ['a', 'é', '字']) {
    for (let length = 0; length <= 192; length += 1) {
      const text = letter.repeat(length)
      expect(portableSha256(text)).toBe(createHash('sha256').update(text).digest('hex'))
    }
  }
})

test('every text has the same digest with and without Node', () => {
  const anyText = fc.string({
    unit: fc.integer({ min: 0, max: 0xffff }).map((code) => String.fromCharCode(code)),
  })
  fc.assert(
    fc.property(anyText, (text) => {
      expect(sha256(text)).toBe(portableSha256(text))
    }),
  )
})
