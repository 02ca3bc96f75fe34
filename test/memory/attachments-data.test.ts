import { jest } from '@jest/globals'
import { deflateSync } from 'node:zlib'
import { loadAttachment } from '../../src/memory/attachments/load-attachment.js'
import { refusal } from './support/refusal.js'
import { tinyPdf } from './support/tiny-pdf.js'

const bytes = (...values: number[]) => new Uint8Array(values)
const utf8 = (text: string) => new TextEncoder().encode(text)

describe('text', () => {
  it.each([
    ['notes.txt', 'text/plain'],
    ['notes.MD', 'text/markdown'],
    ['table.csv', 'text/csv'],
    ['data.json', 'application/json'],
  ])('%s is kept unchanged, as %s', async (name, mimeType) => {
    const data = '[1, "two, three"]'
    expect(await loadAttachment({ data, name })).toEqual({ name, mimeType, bytes: 17, text: data })
  })

  it('has its size in bytes, not in characters', async () => {
    expect(await loadAttachment({ data: 'für 5 €', name: 'a.txt' })).toMatchObject({
      bytes: 10,
      text: 'für 5 €',
    })
  })

  it('has the declared type instead of that of its name, without parameters', async () => {
    const loaded = await loadAttachment({
      data: '# Hi',
      name: 'a.txt',
      mimeType: 'Text/Markdown; charset=utf-8',
    })
    expect(loaded.mimeType).toBe('text/markdown')
  })

  it.each([
    ['UTF-8', bytes(0xef, 0xbb, 0xbf, 0x68, 0x69)],
    ['UTF-16 little-endian', bytes(0xff, 0xfe, 0x68, 0, 0x69, 0)],
    ['UTF-16 big-endian', bytes(0xfe, 0xff, 0, 0x68, 0, 0x69)],
  ])('may start with a byte order mark of %s, which is not part of the text', async (_, data) => {
    expect((await loadAttachment({ data, name: 'a.txt' })).text).toBe('hi')
  })

  it('is decoded by the declared charset', async () => {
    const mimeType = 'text/csv; charset=windows-1251'
    expect((await loadAttachment({ data: bytes(0xcf), name: 'a.csv', mimeType })).text).toBe('П')
  })

  it('is truncated to maxChars with a visible note, never inside a pair', async () => {
    const { text } = await loadAttachment({ data: 'ab😀cd', name: 'a.txt' }, { maxChars: 4 })
    expect(text).toBe('ab…\n\n[Truncated: only the first 4 characters are included.]')
  })

  it('of maxChars characters is whole', async () => {
    expect((await loadAttachment({ data: 'abcd', name: 'a.txt' }, { maxChars: 4 })).text).toBe('abcd')
  })
})

describe('a type that contradicts the content is refused', () => {
  it.each([
    ['a PDF as text', '%PDF-1.7', 'a.txt', 'text/plain', 'a PDF'],
    ['text as a PDF', 'hello', 'a.pdf', 'application/pdf', 'not a PDF'],
    ['no bytes as a PDF', '', 'a.pdf', 'application/pdf', 'empty'],
    [
      'a ZIP archive as a PDF',
      'PK\x03\x04',
      'a.pdf',
      'application/pdf',
      'a ZIP archive, the format of Office documents',
    ],
    [
      'a ZIP archive as CSV',
      'PK\x03\x04',
      'a.csv',
      'text/csv',
      'a ZIP archive, the format of Office documents',
    ],
    ['zero bytes as text', 'a\0b', 'a.md', 'text/markdown', 'binary data'],
    ['truncated JSON as JSON', '{"a":', 'a.json', 'application/json', 'not valid JSON'],
  ])('%s', async (_, data, name, claimed, actual) => {
    const error = await refusal(loadAttachment({ data, name }), 'type_mismatch')
    expect(error).toMatchObject({ subject: name, claimed, actual })
    expect(error.message).toContain(`${name} claims to be ${claimed} (by its name) but is ${actual}.`)
  })

  it('for bytes that are not UTF-8, with a remedy', async () => {
    const error = await refusal(loadAttachment({ data: bytes(0xff, 0x41), name: 'a.txt' }), 'type_mismatch')
    expect(error.message).toContain("Specify its charset, as in 'text/plain; charset=windows-1252'")
  })

  it('with an unknown charset', async () => {
    const mimeType = 'text/plain; charset=klingon'
    await refusal(loadAttachment({ data: utf8('x'), name: 'a.txt', mimeType }), 'type_mismatch')
  })
})

describe('unloadable input is refused', () => {
  it.each([
    ['image/png', 'photo.txt'],
    ['', 'a.txt'],
    ['application/octet-stream', 'a.txt'],
  ])('the type %p', async (mimeType, name) => {
    await refusal(loadAttachment({ data: 'x', name, mimeType }), 'unsupported_type')
  })

  it('a name without a type, with a remedy', async () => {
    const error = await refusal(loadAttachment({ data: 'x', name: 'thing.docx' }), 'unsupported_type')
    expect(error.message).toMatch(/Pass its mimeType/)
  })

  it.each([
    ['null', null],
    ['a string', 'a.txt'],
    ['an empty object', {}],
    ['data and path', { data: 'x', path: 'x', name: 'x' }],
    ['data without a name', { data: 'x' }],
    ['data that is a number', { data: 1, name: 'x' }],
    ['an empty path', { path: '' }],
    ['a name that is a number', { data: 'x', name: 1 }],
    ['a mimeType that is a list', { data: 'x', name: 'a.txt', mimeType: [] }],
  ])('%s instead of an attachment', async (_, attachment) => {
    await refusal(loadAttachment(attachment as never), 'invalid_attachment')
  })

  it.each([
    [{ maxBytes: 0 }, 'maxBytes'],
    [{ maxChars: Number.NaN }, 'maxChars'],
    [{ timeoutMs: 2 ** 31 }, 'timeoutMs'],
    [{ root: '' }, 'root'],
    [{ signal: {} }, 'signal'],
    [{ maxByte: 1 }, 'maxByte'],
    [{ allowAddresses: ['10.0.0.0/33'] }, 'allowAddresses[0]'],
    [{ allowAddresses: ['http://x'] }, 'allowAddresses[0]'],
  ])('invalid options: %p', async (options, subject) => {
    const load = loadAttachment({ data: 'x', name: 'a.txt' }, options as never)
    await expect(load).rejects.toMatchObject({ name: 'ConfigError', subject })
  })

  it.each([
    ['text', 'ääääää'],
    ['bytes', new Uint8Array(11)],
  ])('more than maxBytes of %s', async (_, data) => {
    await refusal(loadAttachment({ data, name: 'a.txt' }, { maxBytes: 10 }), 'too_large')
  })
})

describe('HTML', () => {
  it('becomes its visible text', async () => {
    const data = `<!doctype html><title>T</title><style>p{}</style><script>alert(1)</script>
      <h1>Leave</h1><p>Every <b>one</b> has <a href="https://x.example">30 days</a>.</p><img src=x alt=logo>
      <table><tr><td>Mon</td><td>Tue</td></tr></table>`
    const { text, mimeType } = await loadAttachment({ data, name: 'leave.html' })
    expect(mimeType).toBe('text/html')
    expect(text).toBe('Leave\n\nEvery one has 30 days.\n\nMon   Tue')
  })

  it('with endless nesting is an error, not a crash', async () => {
    const data = '<div>'.repeat(20_000)
    await refusal(loadAttachment({ data, name: 'a.html' }), 'unreadable')
  })

  it('that takes too long is cancelled after timeoutMs', async () => {
    const data = '<div>'.repeat(1_000_000)
    const error = await refusal(loadAttachment({ data, name: 'a.html' }, { timeoutMs: 300 }), 'timeout')
    expect(error.message).toContain('a.html took longer than 300 ms to be converted')
  })
})

describe('PDF', () => {
  it('becomes the text of all its pages', async () => {
    const data = tinyPdf('First page', 'Second page')
    expect(await loadAttachment({ data, name: 'a.pdf' })).toEqual({
      name: 'a.pdf',
      mimeType: 'application/pdf',
      bytes: data.length,
      text: 'First page\n\nSecond page',
    })
    // The caller still owns the bytes.
    expect(data.length).toBeGreaterThan(0)
  })

  it('is truncated to maxPages and to maxChars, with a note', async () => {
    const load = { data: tinyPdf('one', 'two', 'three'), name: 'a.pdf' }
    const [pages, chars] = await Promise.all([
      loadAttachment(load, { maxPages: 2 }),
      loadAttachment(load, { maxChars: 4 }),
    ])
    expect(pages.text).toBe('one\n\ntwo\n\n[Truncated: only the first 2 of 3 pages are included.]')
    expect(chars.text).toBe('one…\n\n[Truncated: only the first 4 characters are included.]')
  })

  it('that is damaged, empty or a decompression bomb is an error with the reason', async () => {
    const bomb = deflateSync(Buffer.alloc(100_000_000, 32), { level: 1 })
    const [damaged, images, unpacks] = await Promise.all([
      refusal(loadAttachment({ data: '%PDF-1.7 oops', name: 'damaged.pdf' }), 'unreadable'),
      refusal(loadAttachment({ data: tinyPdf(''), name: 'scan.pdf' }), 'no_text'),
      refusal(
        loadAttachment({ data: tinyPdf(bomb), name: 'bomb.pdf' }, { maxBytes: 1_000_000 }),
        'too_large',
      ),
    ])
    expect(damaged.subject).toBe('damaged.pdf')
    expect(images.message).toMatch(/OCR/)
    expect(unpacks.message).toMatch(/memory/)
  })

  it('prints nothing', async () => {
    const written = [
      jest.spyOn(process.stdout, 'write').mockReturnValue(true),
      jest.spyOn(process.stderr, 'write').mockReturnValue(true),
    ]
    try {
      await loadAttachment({ data: tinyPdf('quiet'), name: 'a.pdf' })
      for (const write of written) expect(write).not.toHaveBeenCalled()
    } finally {
      for (const write of written) write.mockRestore()
    }
  })
})

it('a signal that has aborted, or aborts during the call, rejects with its reason', async () => {
  const reason = new Error('enough')
  const early = AbortSignal.abort(reason)
  await expect(loadAttachment({ data: 'x', name: 'a.txt' }, { signal: early })).rejects.toBe(reason)

  const controller = new AbortController()
  const load = loadAttachment({ data: tinyPdf('x'), name: 'a.pdf' }, { signal: controller.signal })
  controller.abort(reason)
  await expect(load).rejects.toBe(reason)
})
