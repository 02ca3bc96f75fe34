import fc from 'fast-check'
import { countBase64Bytes, describeMedia, toBase64, toContentPart } from '../../../src/core/models/media.js'

it('bytes become the same base64 as elsewhere', () => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 1, maxLength: 100 }), (bytes) => {
      const text = toBase64(bytes)
      expect(text).toBe(Buffer.from(bytes).toString('base64'))
      expect(countBase64Bytes(text)).toBe(bytes.length)
    }),
  )
})

const large = 'A'.repeat(300_000)

it.each([
  ['nothing', ''],
  ['only padding', '=='],
  ['one letter too many', `${large}A`],
  ['an invalid letter at its start', `*${large.slice(1)}`],
  ['an invalid letter at its end', `${large.slice(1)}*`],
  ['padding at its start', `=${large.slice(1)}`],
  ['too much padding', `${large.slice(3)}===`],
  ['a local address', 'file:///etc/passwd'],
])('base64 is not %s', (_what, image) => {
  expect(() => toContentPart({ type: 'image', image }, 'parts[0]')).toThrow(/^parts\[0\]/)
})

it.each(['AAAA', 'AA==', 'AAA', large, `${large.slice(2)}==`, 'A'.repeat(65_536), 'A'.repeat(65_540)])(
  'base64 is recognized by its letters and its length',
  (image) => {
    const part = toContentPart({ type: 'image', image, mediaType: 'image/png' }, 'parts[0]')
    if (part.type !== 'image_url') throw new Error('It is a picture.')
    expect(part.image_url.url).toBe(`data:image/png;base64,${image}`)
    expect(describeMedia(part)).toBe(describeMedia({ ...part }))
  },
)

it.each([
  ['image/png', '/9j/4AAQSkZJRg==', 'image/jpeg'],
  ['image/jpeg', 'iVBORw0KGgo=', 'image/png'],
  ['image/png', 'PGh0bWw+', 'image/png'],
  ['application/pdf', 'iVBORw0KGgo=', 'application/pdf'],
])('a picture labelled %s with the bytes %s is sent as %s', (mediaType, data, sent) => {
  const part = toContentPart({ type: 'file', data, mediaType }, 'part')
  expect(JSON.stringify(part)).toContain(`data:${sent};base64,`)
})
