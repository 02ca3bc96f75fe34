import * as fc from 'fast-check'
import { portableSha256, sha256 } from '../../guards/lib/sha256.js'

test('the digest is SHA-256 as everybody knows it', () => {
  const empty = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'
  expect(sha256('')).toBe(empty)
  expect(portableSha256('')).toBe(empty)
})

test('with and without Node, every text has the same digest', () => {
  const anyText = fc.string({
    unit: fc.integer({ min: 0, max: 0xffff }).map((code) => String.fromCharCode(code)),
  })
  fc.assert(
    fc.property(anyText, (text) => {
      expect(sha256(text)).toBe(portableSha256(text))
    }),
  )
})
