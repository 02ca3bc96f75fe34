import * as fc from 'fast-check'
import {
  type SecretKind,
  secretKinds,
  secretsShield,
  type SecretsShieldOptions,
} from '../../../src/core/shields/index.js'
import type { ModelRequest } from '../../../src/index.js'
import { redactEvent } from '../../../src/diagram/index.js'
import { formatInputMessages, formatInstructions } from '../../../src/otel/span-content.js'
import { scrubSecrets } from '../../../src/core/shields/secrets.js'
import { toShownText } from '../../../src/studio/shown-values.js'
import { redactedBy, refusal, verdictOf } from './support.js'

// Assembled here, so that secret scanners ignore them.
const alnum = (length: number): string => 'aB3dE6gH9kLmN0pQrS2t'.repeat(10).slice(0, length)
const hex = (length: number): string => 'a1b2c3d4e5f60718'.repeat(10).slice(0, length)
const upper = (length: number): string => 'Q7RS2TUV3WXY4ZAB'.repeat(2).slice(0, length)
const join = (...parts: string[]): string => parts.join('')

/** The kind, the secret, and the surrounding text where detection depends on it. */
const examples: [kind: SecretKind, secret: string, text?: string][] = [
  ['private_key', join('-----BEGIN RSA ', 'PRIVATE KEY-----\nMIIE\nabc=\n-----END RSA ', 'PRIVATE KEY-----')],
  [
    'private_key',
    join('-----BEGIN PGP ', 'PRIVATE KEY BLOCK-----\nxcFG\n-----END PGP ', 'PRIVATE KEY BLOCK-----'),
  ],
  ['private_key', join('-----BEGIN ', 'PRIVATE KEY-----\nMIIE without an end')],
  ['jwt', ['eyJhbGciOiJIUzI1NiJ9', 'eyJzdWIiOiIxIn0', alnum(43)].join('.')],
  ['jwt', ['eyJhbGciOiJub25lIn0', 'eyJzdWIiOiIxIn0', ''].join('.')],
  ['aws', join('AK', 'IA', upper(16))],
  ['aws', join('AS', 'IA', upper(16))],
  ['aws', alnum(40), `aws_secret_access_key = ${alnum(40)}`],
  ['aws', alnum(40), `{"AWS_SECRET_ACCESS_KEY":"${alnum(40)}"}`],
  ['github', join('gh', 'p_', alnum(36))],
  ['github', join('gh', 's_', alnum(36))],
  ['github', join('github', '_pat_', alnum(22), '_', alnum(59))],
  ['gitlab', join('gl', 'pat-', alnum(20))],
  ['openai', join('sk', '-proj-', alnum(60), '_', alnum(60))],
  ['openai', join('sk', '-svcacct-', alnum(60))],
  ['openai', join('sk', '-', alnum(48))],
  ['anthropic', join('sk', '-ant-api03-', alnum(93), 'AA')],
  ['openrouter', join('sk', '-or-v1-', hex(64))],
  ['google', join('AI', 'za', alnum(35))],
  ['google', join('GOC', 'SPX-', alnum(28))],
  ['google', join('ya', '29.', alnum(60))],
  ['slack', join('xo', 'xb-1234567890-1234567890-', alnum(24))],
  ['slack', join('xa', 'pp-1-A0', upper(9), '-1234567890-', hex(64))],
  [
    'slack',
    `T00000000/B00000000/${alnum(24)}`,
    `https://hooks.slack.com/services/T00000000/B00000000/${alnum(24)}`,
  ],
  ['stripe', join('sk', '_live_', alnum(24))],
  ['stripe', join('rk', '_test_', alnum(24))],
  ['stripe', join('whs', 'ec_', alnum(32))],
  ['npm', join('np', 'm_', alnum(36))],
  ['pypi', join('py', 'pi-AgEIcHlwaS5vcmc', alnum(80))],
  ['azure', `${alnum(86)}==`, `DefaultEndpointsProtocol=https;AccountName=a;AccountKey=${alnum(86)}==;`],
  ['azure', join('abc', '8Q~', alnum(34))],
  ['azure', `${alnum(42)}%2B`, `https://a.blob.core.windows.net/c?sv=2024&sig=${alnum(42)}%2B`],
  ['huggingface', join('h', 'f_', alnum(34))],
  ['groq', join('gs', 'k_', alnum(52))],
  ['xai', join('xa', 'i-', alnum(80))],
  ['perplexity', join('pp', 'lx-', alnum(48))],
  ['replicate', join('r', '8_', alnum(37))],
  ['sendgrid', join('S', 'G.', alnum(22), '.', alnum(43))],
  ['twilio', join('S', 'K', hex(32))],
  ['telegram', join('123456789', ':AA', alnum(33))],
  ['digitalocean', join('do', 'p_v1_', hex(64))],
  ['shopify', join('shp', 'at_', hex(32))],
  ['databricks', join('da', 'pi', hex(32))],
  ['vault', join('hv', 's.', alnum(90))],
  ['bearer', `${alnum(24)}.x`, `Authorization: Bearer ${alnum(24)}.x`],
  ['url_password', 'hunter22', 'postgres://app:hunter22@db.example/main'],
  ['url_password', 'hun:ter22', 'redis://:hun:ter22@db.example'],
  ['assigned', 'abcd1234', 'CLIENT_SECRET=abcd1234 node run'],
  ['assigned', 'correct7horse', '{"password":"correct7horse"}'],
  ['assigned', 'correct7horse', JSON.stringify({ body: '{"password":"correct7horse"}' })],
]

describe('text that leaves the process', () => {
  const requestOf = (text: string): ModelRequest => ({
    instructions: text,
    messages: [{ role: 'user', id: 'm1', createdAt: 0, content: text }],
    nudges: [text],
    tools: [],
    sampling: {},
    extraBody: {},
    stream: false,
  })

  it.each(examples)('contains no %s, %j', (_, secret, text = `It is ${secret} and no other.`) => {
    const shown = [
      toShownText(text),
      redactEvent({ event: { text } }, { maxText: 4_000 }).event.text,
      formatInputMessages(requestOf(text)),
      formatInstructions(requestOf(text)) ?? '',
    ]
    for (const one of shown) {
      expect(one).not.toContain(JSON.stringify(secret).slice(1, -1))
      expect(one).not.toContain(secret)
      expect(one).toContain('[redacted]')
    }
  })

  const whole = examples.filter(([, secret]) => !secret.endsWith('without an end'))
  it.each(whole)('keeps the text around a secret of the kind %s, %j', (_, secret, text = secret) => {
    const scrubbed = scrubSecrets(`Use it: ${text} for now.`)
    expect(scrubbed).toMatch(/^Use it: .*\[redacted\].* for now\.$/s)
    expect(scrubbed).not.toContain(secret)
  })
})

describe('secretsShield', () => {
  it('has an example of every kind here', () => {
    expect(new Set(examples.map(([kind]) => kind))).toEqual(new Set(secretKinds))
  })

  it.each(examples)('recognizes %s by its format: %.12s…', async (kind, secret, text = secret) => {
    const verdict = await verdictOf(secretsShield({ kinds: [kind] }), `Use it: ${text}`)
    expect(verdict).toEqual({
      action: 'redact',
      content: `Use it: ${text.replace(secret, `[redacted ${kind}]`)}`,
      message: `The text seems to contain a secret: ${kind}.`,
    })
  })

  const whole = examples.filter(([, secret]) => !secret.endsWith('without an end'))
  it.each(whole)(
    'redacts all of %s if it looks for every kind: %.12s…',
    async (kind, secret, text = secret) => {
      const redacted = await redactedBy(secretsShield(), `a ${text} z`)
      expect(redacted).toBe(`a ${text.replace(secret, `[redacted ${kind}]`)} z`)
    },
  )

  const open = examples.filter(([, secret, text]) => text === undefined && !secret.startsWith('-----'))
  it.each(open)('redacts %s in JSON arguments, which stay JSON', async (kind, secret) => {
    const json = JSON.stringify({ note: `first\n${secret}\tlast`, quoted: `"${secret}"`, plain: secret })
    const mark = `[redacted ${kind}]`
    expect(JSON.parse(await redactedBy(secretsShield(), json))).toEqual({
      note: `first\n${mark}\tlast`,
      quoted: `"${mark}"`,
      plain: mark,
    })
  })

  it.each([
    'read_file({"path":"/home/me/task-management-for-everyone.md"})',
    '{"max_tokens":4096,"tokens":12,"token":"abc"}',
    'https://example.com:8080/path?x=1 and git@github.com:me/it.git',
    'mail me@example.com about the secretary',
    'the risk-assessment-of-all-things, sk-learn-like-estimators-for-everyone-and-more',
    'commit 3f2a1b9c8d7e6f5a4b3c2d1e0f9a8b7c6d5e4f3a',
    'uuid 123e4567-e89b-12d3-a456-426614174000, sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08',
    'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk',
    'The bearer of this letter, bearer authentication-schemes, bearer internationalization',
    'password: required, password: (at least 8 characters), passphrase: forgotten',
    'Set OPENAI_API_KEY=$OPENAI_API_KEY or api_key: <your-key-1>',
    'const accessKey = process.env.KEY; hf_hub_download; npm_config_registry; gh_actions; AIza; xai-sdk; SG.a.b',
    '-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----\n-----BEGIN CERTIFICATE-----',
    'eyJ is how base64 of {" begins',
  ])('does not change other text: %s', async (text) => {
    expect(await verdictOf(secretsShield(), text)).toEqual({ action: 'allow' })
  })

  it('finds only the selected kinds', async () => {
    const shield = secretsShield({ kinds: ['npm'], action: 'block' })
    expect((await verdictOf(shield, join('np', 'm_', alnum(36)))).action).toBe('block')
    expect((await verdictOf(shield, join('gh', 'p_', alnum(36)))).action).toBe('allow')
  })

  it('never finds anything in its redacted text', async () => {
    const shield = secretsShield()
    const tokens = fc.constantFrom(
      ...examples.map(([, secret, text]) => text ?? secret),
      '"',
      '\\n',
      ':',
      '=',
      '@',
      '://',
      ' ',
      'password=',
      'bearer ',
    )
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.oneof(tokens, fc.string({ maxLength: 3 })), { maxLength: 8 }),
        async (parts) => {
          const text = parts.join('')
          const verdict = await verdictOf(shield, text)
          if (verdict.action === 'redact')
            expect(await verdictOf(shield, verdict.content)).toEqual({ action: 'allow' })
          else expect(verdict.action).toBe('allow')
        },
      ),
    )
  })

  it.each<[string, unknown, RegExp]>([
    ['null', null, /the options must be an object/],
    [
      'an unknown kind',
      { kinds: ['aws', 'gcp'] },
      /kinds must be an array of one or more of private_key, jwt/,
    ],
    ['no kinds', { kinds: [] }, /one or more/],
    ['kinds as a string', { kinds: 'aws' }, /one or more/],
    ['a mistyped option', { kind: ['aws'] }, /no option 'kind'/],
    ['an unknown action', { action: 'hide' }, /action must be/],
  ])('refuses %s', (_, options, words) => {
    const { code, message } = refusal(() => secretsShield(options as SecretsShieldOptions))
    expect(code).toBe('invalid_shield')
    expect(message).toMatch(words)
  })
})

describe('a key in disguise', () => {
  const key = join('AK', 'IA', upper(16))
  const letters = key.split('')
  const fullWidth = letters.map((letter) => String.fromCharCode(letter.charCodeAt(0) + 0xfee0)).join('')
  const disguises: [how: string, text: string][] = [
    ['zero-width characters', letters.join('\u200b')],
    ['a zero-width joiner', `${key.slice(0, 3)}\u200d${key.slice(3)}`],
    ['a soft hyphen and a direction mark', `${key.slice(0, 9)}\u00ad\u202e${key.slice(9)}`],
    ['full-width letters', fullWidth],
    ['bold letters', `\u{1d400}${key.slice(1)}`],
    ['a line break', `${key.slice(0, 8)}\n${key.slice(8)}`],
    ['an indented Windows line break', `${key.slice(0, 8)}\r\n    ${key.slice(8)}`],
    [
      'line breaks and zero-width characters',
      `${key.slice(0, 2)}\u200b\n${key.slice(2, 12)}\n${key.slice(12)}`,
    ],
    ['escapes of JSON', JSON.stringify(`${key.slice(0, 8)}\n\u200b${key.slice(8)}`).slice(1, -1)],
    ['escaped letters', `\\u0041${key.slice(1)}`],
  ]

  it.each(disguises)('is found with %s, and removed completely', async (_, disguised) => {
    const verdict = await verdictOf(secretsShield(), `before ${disguised} behind`)
    expect(verdict).toMatchObject({ action: 'redact', content: 'before [redacted aws] behind' })
  })

  it('does not include the text of the next line', async () => {
    const github = join('gh', 'p_', alnum(36))
    expect(await redactedBy(secretsShield(), `${github}\nPlease keep it.`)).toBe(
      '[redacted github]\nPlease keep it.',
    )
  })

  it('includes its continuation on the next line', async () => {
    const github = join('gh', 'p_', alnum(36))
    expect(await redactedBy(secretsShield(), `${github}\n${alnum(20)} is it.`)).toBe(
      '[redacted github] is it.',
    )
  })

  it('is found at any line break, between any words', async () => {
    const words = fc.string({ unit: fc.constantFrom('a', ' ', '\n', 'ß', '，', '.', '\\'), maxLength: 12 })
    const breaks = fc.constantFrom('\u200b', '\n', '\r\n', '\\n', '\u2060')
    await fc.assert(
      fc.asyncProperty(words, fc.nat(key.length), breaks, words, async (before, at, broken, after) => {
        const text = `${before} ${key.slice(0, at)}${broken}${key.slice(at)} ${after}`
        const verdict = await verdictOf(secretsShield(), text)
        expect(verdict).toMatchObject({ action: 'redact' })
        expect(JSON.stringify(verdict)).not.toContain(key.slice(-6))
      }),
    )
  })
})
