import { toEvidence, scrubEvidence } from '../../../guards/lib/words.js'
import type { JsonObject } from '../../../machines/agent/json.js'
import { fitSchema } from '../../../src/core/models/fit-tools.js'
import { toParameters } from '../../../src/core/tools/input-schema.js'
import { parseArguments } from '../../../src/core/tools/parse-arguments.js'
import type { Tool } from '../../../src/core/tools/tool.js'
import {
  defineTool,
  patternShield,
  piiShield,
  formatSnippets,
  runShields,
  secretsShield,
  type Shield,
} from '../../../src/index.js'
import { findJsonProblem } from '../../../src/core/base/json.js'
import { scrubSecrets, secretKinds } from '../../../src/core/shields/secrets.js'
import { stripControls, shorten } from '../../../src/core/format/format-words.js'
import { classifyToolError } from '../../../src/core/tools/tool-error.js'
import { piiKinds } from '../../../src/core/shields/pii.js'
import { redactEvent } from '../../../src/diagram/redact.js'
import { type Row, row } from '../measure.js'

/** Prefixes that never complete a match. A pattern that restarts at each of them is quadratic. */
const promises = [
  'a',
  ' ',
  '1',
  '\\n',
  '\n',
  '"',
  '://',
  '://a:',
  'a:a@',
  'a.',
  'a@a.',
  '-----BEGIN ',
  '-----BEGIN PRIVATE KEY-----',
  'eyJ',
  '\\neyJ',
  'eyJ\n',
  'eyJaaaaa.',
  'eyJaaaaa-',
  'eyJaaaaa.eyJ',
  'sk-',
  'sk-ant-',
  'sk-or-v1-',
  'AKIA',
  'ghp_',
  'github_pat_',
  'glpat-',
  'AIza',
  'ya29.',
  'GOCSPX-',
  'xoxb-',
  'hooks.slack.com/services/',
  'sk_live_',
  'whsec_',
  'npm_',
  'pypi-AgE',
  'hf_',
  'gsk_',
  'xai-',
  'pplx-',
  'r8_',
  'SG.',
  'SG.aaaaaaaaaaaaaaaaaaaaaa.',
  'SK0',
  '12345678:AA',
  'dop_v1_',
  'shpat_',
  'dapi0',
  'hvs.',
  'bearer ',
  'AccountKey=',
  '?sig=%2',
  '.0Q~',
  'aaa0Q~',
  'password=',
  'password="',
  'password\\"',
  'api_key: ',
  'token:\\"x',
  'aws_secret_access_key=',
  'sk-\n',
  'AKIA\u200b',
  'Ａ',
  '\u200b',
  ' \n',
  '+1(',
  'DE12 ',
  '2-',
  '4111 ',
  '555-',
] as const

/** It ends with a line, so that shields also check it with its lines joined. */
const many = (unit: string, n: number): string => `${unit.repeat(Math.ceil(n / unit.length)).slice(0, n)}\n`

const shown = (unit: string): string => JSON.stringify(unit.length > 24 ? `${unit.slice(0, 24)}…` : unit)

const signal = new AbortController().signal

const checkedBy =
  (shield: Shield) =>
  (text: string): unknown =>
    shield.check(text, { point: 'output', signal })

const ofShield = (what: string, covers: readonly string[], shield: Shield): Row[] =>
  promises.map((unit) =>
    row({
      name: `${what} in many ${shown(unit)}`,
      covers,
      oneOf: 96,
      from: 4_000,
      atMost: 64_000,
      prepare: (n) => many(unit, n),
      run: checkedBy(shield),
    }),
  )

const ofText = (
  name: string,
  covers: readonly string[],
  run: (text: string) => unknown,
  units: readonly string[] = promises,
): Row[] =>
  units.map((unit) =>
    row({
      name: `${name} of many ${shown(unit)}`,
      covers,
      oneOf: 96,
      from: 4_000,
      atMost: 64_000,
      prepare: (n) => many(unit, n),
      run,
    }),
  )

const patterns = patternShield({ patterns: [/\bproject falcon\b/i, /[A-Z]{3}-\d{4}/], action: 'redact' })

const snippets = (text: string) => [{ source: 'a.md', text }]

const alone = [
  'a ',
  '{',
  '[',
  '\\u0061',
  '"\\"',
  '```',
  '<think>',
  '`<think>',
  '\u001b[31m',
  'timed out ',
] as const

/** A call of a tool with an untrusted schema. */
const checkedAgainst = (schema: JsonObject) => {
  const tool = defineTool({
    name: 'look',
    description: 'Looks.',
    input: { type: 'object', ...schema },
    execute: () => 'ok',
  }) as Tool
  return (text: string) => parseArguments(tool, JSON.stringify({ at: text, [text]: 1 }))
}

/** Characters that such schema patterns often repeat, and an end that matches none. */
const almost = (n: number, unit = 'a') => `${unit.repeat(n)}!\u0000`

const strangers: readonly [name: string, schema: JsonObject][] = [
  ...['^(a+)+$', '(a*)*b', '^(a|aa)+$', '(?=a)(a+)+$', '\\s*$', '(.*)*x'].map(
    (pattern): [string, JsonObject] => [
      `the pattern ${pattern}`,
      { properties: { at: { type: 'string', pattern } } },
    ],
  ),
  ...['^(a+)+$', '^[a-z]+$', 'a+$'].map((pattern): [string, JsonObject] => [
    `the keys ${pattern}`,
    { patternProperties: { [pattern]: { type: 'number' } } },
  ]),
  ...[
    'url',
    'uri',
    'uri-reference',
    'uri-template',
    'email',
    'hostname',
    'regex',
    'date-time',
    'duration',
    'json-pointer',
  ].map((format): [string, JsonObject] => [
    `the format ${format}`,
    { properties: { at: { type: 'string', format } } },
  ]),
]

const strangerRows: readonly Row[] = strangers.map(([name, schema]) =>
  row({
    name: `arguments against ${name}`,
    covers: [],
    oneOf: 24,
    from: 1_000,
    atMost: 64_000,
    prepare: (n) => [almost(n), almost(n, ' '), `http://${almost(n)}`, `a@${almost(n)}`],
    run: async (texts) => {
      const check = checkedAgainst(schema)
      for (const text of texts) await check(text)
    },
  }),
)

/** A schema with this many alternatives, with keys and keywords that providers reject. */
const oddSchema = (ways: number) => ({
  type: 'object' as const,
  anyOf: Array.from({ length: ways }, (_, i) => ({
    properties: {
      kind: { const: `${i}` },
      [`$${i}`]: { type: 'int' },
      list: { type: 'array', items: [{ enum: [] }] },
    },
    required: ['kind', `$${i}`],
  })),
})

export const textRows: readonly Row[] = [
  ...(['openai', 'anthropic', 'gemini'] as const).map((family) =>
    row({
      name: `a tool with many alternatives, for ${family}`,
      covers: [],
      from: 50,
      atMost: 400,
      prepare: oddSchema,
      run: (schema) => fitSchema(toParameters(schema), family),
    }),
  ),
  ...ofShield(
    'secretsShield',
    ['statewright secretsShield', ...secretKinds.map((kind) => `secret ${kind}`)],
    secretsShield(),
  ),
  ...ofShield(
    'piiShield',
    ['statewright piiShield', ...piiKinds.map((kind) => `personal data ${kind}`)],
    piiShield(),
  ),
  ...strangerRows,
  ...ofText('patternShield', ['statewright patternShield'], checkedBy(patterns), ['a', 'project ', 'AAA-']),
  ...ofText(
    'runShields',
    ['statewright runShields'],
    (text) => runShields([secretsShield(), piiShield()], text, { point: 'output', signal }),
    ['a', 'eyJ', 'sk-\n'],
  ),
  ...ofText('scrub', [], scrubEvidence),
  ...ofText('scrubSecrets', [], scrubSecrets, ['eyJ', '\\neyJ', 'a', 'sk-\n', '://a:', 'password=']),
  ...ofText('evidence', [], toEvidence, ['eyJ', 'a']),
  ...ofText(
    'redact',
    ['statewright/diagram redactEvent', 'statewright/diagram createInspectorOptions'],
    (text) => redactEvent({ event: { text } }),
    ['eyJ', 'a'],
  ),
  ...ofText(
    'formatSnippets',
    ['statewright formatSnippets', 'statewright/memory formatSnippets'],
    (text) => formatSnippets(snippets(text)),
    ['a '],
  ),
  ...ofText('findJsonProblem', [], findJsonProblem, alone),
  ...ofText('printable', [], stripControls, alone),
  ...ofText('shorten', [], (text) => shorten(text, 100), alone),
  ...ofText('classifyToolError', [], (text) => classifyToolError(new Error(text)), [
    ...alone,
    ...promises.slice(0, 10),
  ]),
]
