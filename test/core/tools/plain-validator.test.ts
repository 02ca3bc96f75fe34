import * as fc from 'fast-check'
import type { JsonObject } from '../../../machines/agent/json.js'
import { defineTool } from '../../../src/index.js'
import { parseArguments } from '../../../src/core/tools/parse-arguments.js'
import type { Tool } from '../../../src/core/tools/tool.js'

const toolWith = (input: JsonObject): Tool =>
  defineTool({
    name: 'book',
    description: 'Books.',
    input: input as { type: 'object' },
    execute: () => 'ok',
  }) as Tool

/** The model-facing message, or null if the arguments are valid. */
async function refusal(input: JsonObject, value: unknown): Promise<string | null> {
  const parsed = await parseArguments(toolWith({ type: 'object', ...input }), JSON.stringify(value))
  return parsed.ok ? null : parsed.message
}

const trip: JsonObject = {
  properties: {
    city: { type: 'string', minLength: 2 },
    days: { type: 'integer', minimum: 1 },
    'in words': { enum: ['long', 'short'] },
    guests: {
      type: 'array',
      items: { type: 'object', properties: { name: { $ref: '#/$defs/name' } }, required: ['name'] },
    },
    pay: { anyOf: [{ type: 'null' }, { type: 'object', properties: { iban: { type: 'string' } } }] },
  },
  required: ['city'],
  additionalProperties: false,
  $defs: { name: { type: 'string', pattern: '^[A-Z]' } },
}

describe('arguments of a tool with a plain JSON Schema', () => {
  test.each([
    [{ city: 'Paris' }],
    [{ city: 'Paris', days: 3, 'in words': 'long', guests: [{ name: 'Ann', age: 7 }], pay: null }],
    [{ city: 'Paris', pay: { iban: 'DE', any: [] } }],
  ])('are accepted if they match: %j', async (input) => {
    expect(await refusal(trip, input)).toBeNull()
  })

  test.each<[unknown, string[]]>([
    [{}, ['- city: Missing.']],
    [{ city: 7 }, ['- city: Type "number" is invalid. Expected "string".']],
    [{ city: 'P' }, ['- city: String is too short (1 < 2).']],
    [
      { city: 'Paris', days: 0.5 },
      ['- days: Type "number" is invalid. Expected "integer".', '- days: 0.5 is less than 1'],
    ],
    [{ city: 'Paris', 'in words': 'x' }, ['- ["in words"]: This does not match any of ["long","short"].']],
    [{ city: 'Paris', guests: [{ name: 'Ann' }, {}] }, ['- guests[1].name: Missing.']],
    [{ city: 'Paris', guests: [{ name: 'ann' }] }, ['- guests[0].name: String does not match pattern.']],
    [{ city: 'Paris', pay: { iban: 7 } }, ['- pay: This does not match any subschemas.; expected {"anyOf"']],
    [{ city: 'Paris', 'a/b~c %': 1 }, ['- ["a/b~c %"]: This field is not allowed.']],
    [
      { days: 'x', more: 1 },
      ['- city: Missing.', '- days: Type "string" is invalid. Expected "integer".', '- more: This'],
    ],
  ])('are refused with the field named: %j', async (input, lines) => {
    const message = await refusal(trip, input)
    const [head, ...rest] = (message ?? '').split('\n')
    expect(head).toBe("The arguments of 'book' do not match its schema:")
    expect(rest.at(-1)).toBe('Correct them and call it again.')
    expect(rest).toHaveLength(lines.length + 1)
    for (const line of lines) expect(rest.some((one) => one.startsWith(line))).toBe(true)
  })

  test('are validated by the draft that the schema names', async () => {
    const old = {
      properties: {
        range: { items: [{ type: 'number' }, { type: 'string' }] },
        n: { minimum: 1, exclusiveMinimum: true },
      },
    }
    const draft = (version: string) => ({ ...old, $schema: `http://json-schema.org/${version}/schema#` })
    expect(await refusal(draft('draft-04'), { range: [1, 'x'], n: 1 })).toContain('- n: ')
    expect(await refusal(draft('draft-07'), { range: ['x', 1] })).toContain('- range[0]: ')
    const now = { properties: { range: { prefixItems: [{ type: 'number' }] } } }
    expect(await refusal(now, { range: ['x'] })).toContain('- range[0]: ')
  })

  test.each<[string, JsonObject]>([
    ['an unknown keyword', { 'x-order': 3, properties: { a: { widget: 'slider', nullable: true } } }],
    [
      'a pattern of another dialect',
      { properties: { a: { pattern: '(?i)^x$' } }, patternProperties: { '(?P<n>x)': false } },
    ],
    ['an unknown format', { properties: { a: { type: 'string', format: 'postcode' } } }],
    ['an external reference', { properties: { a: { $ref: 'https://example.com/schema.json' } } }],
    ['a recursive reference', { properties: { a: { $ref: '#/properties/a' } } }],
    ['an invalid enum', { properties: { a: { enum: 'x' } } }],
    ['invalid properties', { properties: { a: 7 } }],
    ['two parts with one id', { $defs: { a: { $id: 'x' }, b: { $id: 'x' } } }],
  ])('are accepted if the schema has %s', async (_, schema) => {
    expect(await refusal(schema, { a: 'x', b: 1 })).toBeNull()
  })

  test('are still validated if a pattern is of another dialect', async () => {
    const schema = { properties: { a: { pattern: '(?i)^x$', maxLength: 1 } }, required: ['b'] }
    expect(await refusal(schema, { a: 'xx' })).toMatch(/- b: Missing\.[^]*|- a: /)
    expect(await refusal(schema, { a: 'xx' })).toContain('- b: Missing.')
    expect(await refusal(schema, { a: 'xx' })).toContain('- a: String is too long')
  })

  test('are validated without compiling the schema to code', async () => {
    const created: string[] = []
    const { Function: original } = globalThis
    globalThis.Function = new Proxy(original, {
      construct: (target, args: string[]) => {
        created.push(args.join())
        return Reflect.construct(target, args) as object
      },
    })
    try {
      await refusal(trip, { city: 7 })
    } finally {
      globalThis.Function = original
    }
    expect(created).toEqual([])
  })

  test('are accepted or refused for any schema', async () => {
    await fc.assert(
      fc.asyncProperty(fc.dictionary(fc.string(), fc.jsonValue()), fc.jsonValue(), async (schema, input) => {
        const { $schema: _, properties, ...more } = schema as JsonObject
        const parsed = await parseArguments(
          toolWith({ ...more, type: 'object', properties: { a: properties ?? {} } }),
          JSON.stringify({ a: input }),
        )
        expect(typeof parsed.ok).toBe('boolean')
      }),
    )
  })
})

describe('untrusted patterns take linear time', () => {
  const long = `${'a'.repeat(20_000)}!`
  const text = (rules: JsonObject): JsonObject => ({ properties: { at: { type: 'string', ...rules } } })

  it.each(['^(a+)+$', '^(a|aa)+$'])('%s', async (pattern) => {
    expect(await refusal(text({ pattern }), { at: long })).toContain('does not match pattern')
    expect(await refusal(text({ pattern }), { at: 'aaa' })).toBeNull()
  })

  it('next to a format and other rules', async () => {
    const both = text({ pattern: '^a', format: 'email', allOf: [{ minLength: 3 }] })
    expect(await refusal(both, { at: 'ann@example.com' })).toBeNull()
    expect(await refusal(both, { at: 'ben@example.com' })).toContain('does not match pattern')
    expect(await refusal(both, { at: 'ann' })).toContain('format')
  })

  it('and a pattern that RE2 does not support is not checked', async () => {
    expect(await refusal(text({ pattern: '^(?=a)(a+)+$' }), { at: long })).toBeNull()
    expect(await refusal(text({ pattern: String.raw`^(a+)\1$` }), { at: long })).toBeNull()
  })

  it('and keys are checked if that is safe, otherwise accepted', async () => {
    const keys = (pattern: string): JsonObject => ({
      patternProperties: { [pattern]: { type: 'number' } },
      additionalProperties: false,
    })
    expect(await refusal(keys('^x-'), { 'x-a': 1 })).toBeNull()
    expect(await refusal(keys('^x-'), { 'x-a': 'one' })).not.toBeNull()
    expect(await refusal(keys('^x-'), { a: 1 })).not.toBeNull()
    expect(await refusal(keys('^(a+)+$'), { [long]: 1 })).toBeNull()
  })

  it('and so are urls', async () => {
    expect(await refusal(text({ format: 'url' }), { at: `http://${long}` })).toBeNull()
    expect(await refusal(text({ format: 'url' }), { at: 'no url' })).not.toBeNull()
  })
})
