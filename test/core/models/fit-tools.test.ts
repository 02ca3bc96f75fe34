import { Ajv2020 } from 'ajv/dist/2020.js'
import fc from 'fast-check'
import type { Json, JsonObject } from '../../../machines/agent/json.js'
import {
  findSchemaFamily,
  fitSchema,
  fitTools,
  type SchemaFamily,
} from '../../../src/core/models/fit-tools.js'
import type { ModelRequest } from '../../../src/core/models/provider.js'
import { createValidator, toParameters } from '../../../src/core/tools/input-schema.js'
import { sampled } from '../../support/extent.js'

const ajv = new Ajv2020({ strict: false, validateFormats: false, logger: false })
const families: readonly SchemaFamily[] = ['openai', 'anthropic', 'gemini']

const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The subschemas of a schema under draft 2020-12. */
function subschemas(schema: JsonObject): Json[] {
  const list = ['anyOf', 'oneOf', 'allOf', 'prefixItems'].flatMap((key) => (schema[key] ?? []) as Json[])
  const maps = ['properties', '$defs', 'definitions', 'patternProperties', 'dependentSchemas']
  const named = maps.flatMap((key) => Object.values((schema[key] ?? {}) as JsonObject))
  const keys =
    'items additionalProperties contains not if then else propertyNames unevaluatedProperties unevaluatedItems'
  return [
    ...list,
    ...named,
    ...keys.split(' ').flatMap((key) => (schema[key] === undefined ? [] : [schema[key]])),
  ] as Json[]
}

function walk(schema: Json, look: (schema: JsonObject) => string | undefined): string | undefined {
  if (!isObject(schema)) return undefined
  const fault = look(schema)
  if (fault !== undefined) return `${fault}: ${JSON.stringify(schema)}`
  return subschemas(schema)
    .map((inner) => walk(inner, look))
    .find((one) => one !== undefined)
}

const geminiKeys = new Set(
  (
    'type format title description nullable enum maxItems minItems properties required minProperties maxProperties minLength ' +
    'maxLength pattern example anyOf propertyOrdering default items minimum maximum'
  ).split(' '),
)

/** From the providers' error messages. */
const rules: Record<SchemaFamily, (schema: JsonObject) => string | undefined> = {
  openai: (schema) => {
    const types = [schema.type].flat()
    if (types.includes('array') && schema.items === undefined && schema.prefixItems === undefined)
      return 'array schema missing items'
    return undefined
  },
  anthropic: (schema) => {
    const odd = Object.keys(schema.properties ?? {}).find((key) => !/^[a-zA-Z0-9_.-]{1,64}$/.test(key))
    return odd === undefined ? rules.openai(schema) : `Property keys should match pattern: ${odd}`
  },
  gemini: (schema) => {
    const unknown = Object.keys(schema).find((key) => !geminiKeys.has(key))
    if (unknown !== undefined) return `Unknown name "${unknown}"`
    if (schema.anyOf !== undefined)
      return Object.keys(schema).length === 1 ? undefined : 'any_of must be the only field set'
    const { type, format, enum: values, items, required = [], properties = {} } = schema
    if (typeof type !== 'string') return 'type must be specified when not using any_of'
    if (values !== undefined && type !== 'string') return 'enum only allowed for STRING type'
    if (
      values !== undefined &&
      !(
        (values as Json[]).length > 0 &&
        (values as Json[]).every((one) => typeof one === 'string' && one !== '')
      )
    )
      return 'enum: cannot be empty'
    const formats: Record<string, string[]> = {
      string: ['enum', 'date-time'],
      number: ['float', 'double'],
      integer: ['int32', 'int64'],
    }
    if (format !== undefined && !formats[type]?.includes(format as string)) return 'format is not supported'
    if (type === 'array' && !isObject(items)) return 'items: missing field'
    if ((required as string[]).some((name) => !Object.hasOwn(properties as object, name)))
      return 'required: property is not defined'
    return undefined
  },
}

function faultOf(family: SchemaFamily, parameters: JsonObject): string | undefined {
  if (parameters.type !== 'object' || !isObject(parameters.properties))
    return 'schema must be an object with properties'
  const top = ['oneOf', 'anyOf', 'allOf', 'enum', 'not'].find((key) => key in parameters)
  if (top !== undefined) return `${top} at the top level`
  if (ajv.validateSchema(parameters) !== true) return ajv.errorsText()
  return walk(parameters, rules[family])
}

const name = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom('a', 'b', 'c') },
  fc.constantFrom(
    '$top',
    'filter[name]',
    'StartTime<',
    'a'.repeat(70),
    '',
    '__proto__',
    'properties',
    'type',
    'né',
  ),
)
const count = fc.nat({ max: 5 })
const anyType = fc.constantFrom('string', 'number', 'integer', 'boolean', 'array', 'object', 'null')
const value = fc.oneof(
  fc.string({ maxLength: 3 }),
  fc.integer({ min: -5, max: 5 }),
  fc.boolean(),
  fc.constant(null),
)
const names = fc.uniqueArray(name, { maxLength: 3 })

type Keywords = Record<string, fc.Arbitrary<unknown>>

const sound = (schema: fc.Arbitrary<unknown>): Keywords => ({
  type: fc.oneof(anyType, fc.uniqueArray(anyType, { minLength: 1, maxLength: 3 })),
  description: fc.string({ maxLength: 5 }),
  title: fc.constant('T'),
  properties: fc.dictionary(name, schema, { maxKeys: 3 }),
  // Ajv accepts {} although the property '' or '__proto__' is required.
  required: names.map((list) => list.filter((one) => one !== '' && one !== '__proto__')),
  additionalProperties: fc.oneof(fc.boolean(), schema),
  patternProperties: fc.dictionary(fc.constantFrom('^a', 'b$'), schema, { maxKeys: 1 }),
  items: schema,
  prefixItems: fc.array(schema, { minLength: 1, maxLength: 2 }),
  enum: fc.uniqueArray(value, { minLength: 1, maxLength: 3 }),
  const: value,
  default: value,
  minimum: count,
  exclusiveMinimum: count,
  maximum: count,
  multipleOf: fc.integer({ min: 1, max: 3 }),
  minLength: count,
  maxItems: count,
  uniqueItems: fc.boolean(),
  pattern: fc.constantFrom('^a', '[0-9]+'),
  format: fc.constantFrom('date-time', 'uri', 'email', 'int32'),
  anyOf: fc.array(schema, { minLength: 1, maxLength: 3 }),
  oneOf: fc.array(schema, { minLength: 1, maxLength: 2 }),
  allOf: fc.array(schema, { minLength: 1, maxLength: 2 }),
  not: schema,
  if: schema,
  // oxlint-disable-next-line unicorn/no-thenable -- a keyword
  then: schema,
  $ref: fc.constantFrom('#/$defs/one', '#/$defs/two', '#'),
})

const odd = (schema: fc.Arbitrary<unknown>): Keywords => ({
  type: fc.constantFrom('int', 'STRING', 'any', '', 'float', ['string', null], ['int', 'null'], [], null, 7),
  nullable: fc.boolean(),
  exclusiveMinimum: fc.constantFrom(true, false, null, '3'),
  exclusiveMaximum: fc.boolean(),
  minimum: fc.constantFrom(null, '0', 1),
  maxLength: fc.constantFrom(null, -1, 1.5, '9'),
  enum: fc.constantFrom([], null, 'x', ['', 'a'], ['a', null]),
  properties: fc.constantFrom([], null, { a: 'string', b: null }),
  required: fc.constantFrom(true, null, 'a', [1], ['a', 'a']),
  items: fc.oneof(fc.constantFrom([], null, 'string'), fc.array(schema, { minLength: 1, maxLength: 2 })),
  pattern: fc.constantFrom(null, '(', String.raw`^\p{L}`, '(?P<n>x)', '(?<n>x)', '/x/i'),
  format: fc.constantFrom(null, 7, 'postcode'),
  anyOf: fc.constantFrom([], null, {}, [1]),
  dependencies: fc.constantFrom({ a: ['b'] }, { a: { required: ['b'] } }, null),
  description: fc.constantFrom(null, 7),
  additionalProperties: fc.constantFrom([], null, 'no'),
  examples: fc.constantFrom({}, 'x', [1]),
  $schema: fc.constantFrom(
    'http://json-schema.org/draft-04/schema#',
    'http://json-schema.org/draft-07/schema#',
  ),
})

function schemas(keywords: (schema: fc.Arbitrary<unknown>) => Keywords) {
  const { schema } = fc.letrec<{ schema: unknown }>((tie) => ({
    schema: fc.oneof(
      { maxDepth: 3, withCrossShrink: true },
      fc.oneof(
        fc.constant({}),
        fc.boolean(),
        anyType.map((type) => ({ type })),
      ),
      fewOf(keywords(tie('schema'))),
    ),
  }))
  return fc
    .tuple(fewOf(keywords(schema)), fc.dictionary(name, schema, { maxKeys: 3 }), schema, schema)
    .map(([top, properties, one, two]) => {
      const plain = JSON.parse(JSON.stringify({ properties, ...top, $defs: { one, two } })) as JsonObject
      return { ...plain, type: 'object' as const }
    })
}

/** Up to four of the keywords, because most larger combinations reject every value. */
function fewOf(keywords: Keywords): fc.Arbitrary<JsonObject> {
  return fc
    .uniqueArray(fc.constantFrom(...Object.keys(keywords)), { maxLength: 4 })
    .chain((keys) =>
      fc.record(Object.fromEntries(keys.map((key) => [key, keywords[key] as fc.Arbitrary<unknown>]))),
    ) as fc.Arbitrary<JsonObject>
}

const argumentsOf = fc.dictionary(
  name,
  fc.oneof(value, fc.array(value, { maxLength: 2 }), fc.dictionary(name, value, { maxKeys: 2 })),
  {
    maxKeys: 3,
  },
)

const mixed = schemas((schema) => {
  const [good, bad] = [sound(schema), odd(schema)]
  return Object.fromEntries(
    [...new Set([...Object.keys(good), ...Object.keys(bad)])].map((key) => [
      key,
      fc.oneof(...[good[key], bad[key]].filter((one) => one !== undefined)),
    ]),
  )
})

/** Our validator checks formats. Ajv does not. */
function withoutFormats(schema: JsonObject): JsonObject {
  return JSON.parse(JSON.stringify(schema), (key, value: Json) =>
    key === 'format' ? undefined : value,
  ) as JsonObject
}

function fitOrNone(parameters: JsonObject, family: SchemaFamily): JsonObject[] {
  try {
    return [fitSchema(parameters, family)]
  } catch {
    return []
  }
}

/** Also false for circular references. */
function accepts(schema: JsonObject, args: Json): boolean {
  try {
    return ajv.validate(schema, args)
  } catch {
    return false
  }
}

describe('the schema that is sent', () => {
  test.each(families)('satisfies the rules of %s', (family) => {
    fc.assert(
      fc.property(mixed, (schema) => {
        const parameters = toParameters(schema)
        let fitted: JsonObject
        try {
          fitted = fitSchema(parameters, family)
        } catch (error) {
          // The error explains why the tool is left out.
          expect((error as Error).message).toMatch(/^its input schema (refers to|has more than)/)
          return
        }
        expect(faultOf(family, fitted)).toBeUndefined()
      }),
      { numRuns: sampled(2_500) },
    )
  })

  test('is the same object if the schema is within the rules', () => {
    const plain = toParameters({
      type: 'object',
      properties: {
        a: { type: ['string', 'null'] },
        b: { anyOf: [{ type: 'array', items: {} }, { $ref: '#/$defs/c' }] },
      },
      required: ['a'],
      additionalProperties: false,
      $defs: { c: { type: 'object', properties: { n: { type: 'integer', exclusiveMinimum: 0 } } } },
    })
    expect(fitSchema(plain, 'openai')).toBe(plain)
    expect(fitSchema(plain, 'anthropic')).toBe(plain)
  })

  test('names the top-level alternatives in its description', () => {
    const ways = [
      { properties: { content: { type: 'string' } }, required: ['content', 'x'] },
      { $ref: '#/$defs/url' },
    ]
    const $defs = { url: { properties: { source: { type: 'string' } }, required: ['source', 'x'] } }
    const schema = toParameters({
      type: 'object',
      description: 'A page.',
      properties: { x: {} },
      anyOf: ways,
      $defs,
    })
    expect(fitSchema(schema, 'openai')).toEqual({
      type: 'object',
      description: `A page. (anyOf: ${JSON.stringify(ways)})`,
      properties: { x: {}, content: { type: 'string' }, source: { type: 'string' } },
      required: ['x'],
      $defs,
    })
  })

  test('moves keys that Anthropic refuses into its description, at any depth', () => {
    const filter = { type: 'string' }
    const inner = {
      type: 'object',
      properties: { $top: { type: 'integer' }, ok: {} },
      required: ['ok', '$top'],
      additionalProperties: false,
    }
    const schema = toParameters({ type: 'object', properties: { 'filter[name]': filter, inner } })
    expect(fitSchema(schema, 'anthropic')).toEqual({
      type: 'object',
      description: '(further properties: {"filter[name]":{"type":"string"}})',
      properties: {
        inner: {
          type: 'object',
          description: '(further properties: {"$top":{"type":"integer"}}, required among these: ["$top"])',
          properties: { ok: {} },
          required: ['ok'],
        },
      },
    })
  })

  test('is OpenAPI for Gemini', () => {
    const node = { type: 'object', description: 'A node.', properties: { next: { $ref: '#/$defs/node' } } }
    const schema = toParameters({
      type: 'object',
      properties: {
        size: { type: 'integer', enum: [1, 2], exclusiveMinimum: 0 },
        mode: { enum: ['', 'fast'] },
        at: { type: ['string', 'null'], format: 'uri', description: 'Where.' },
        node: { $ref: '#/$defs/node' },
        list: { type: 'array' },
        map: { type: 'object', additionalProperties: { type: 'number' } },
      },
      required: ['size', 'gone'],
      additionalProperties: false,
      $defs: { node },
    })
    expect(fitSchema(schema, 'gemini')).toEqual({
      type: 'object',
      properties: {
        size: { type: 'integer', description: '(exclusiveMinimum: 0, one of: [1,2])' },
        mode: { type: 'string', description: '(one of: ["","fast"])' },
        at: { anyOf: [{ type: 'string', description: 'Where. (format: "uri")' }, { type: 'null' }] },
        node: {
          type: 'object',
          description: 'A node.',
          properties: { next: { type: 'object', description: '($ref: "#/$defs/node")' } },
        },
        list: { type: 'array', items: { type: 'string' } },
        map: { type: 'object', description: '(additionalProperties: {"type":"number"})' },
      },
      required: ['size'],
    })
  })

  test.each(families)('is bounded for %s, even if references double at each level', (family) => {
    const $defs: JsonObject = { d0: { type: 'string' } }
    for (let level = 1; level <= 40; level += 1) {
      const ref = { $ref: `#/$defs/d${level - 1}` }
      $defs[`d${level}`] = {
        type: 'object',
        anyOf: [ref, { allOf: [ref] }],
      }
    }
    const schema = toParameters({
      type: 'object',
      allOf: [{ $ref: '#/$defs/d40' }, { $ref: '#/$defs/d39' }],
      $defs,
    })
    expect(() => fitSchema(schema, family)).toThrow('its input schema has more than 5000 parts')
  })
})

describe('the accepted arguments of a tool', () => {
  test('are exactly those of its schema, and all are shown', async () => {
    let accepted = 0
    await fc.assert(
      fc.asyncProperty(
        schemas(sound),
        fc.array(argumentsOf, { minLength: 5, maxLength: 5 }),
        async (input, all) => {
          const schema = withoutFormats(input) as JsonObject & { type: 'object' }
          const parameters = toParameters(schema)
          const shown = [
            schema,
            parameters,
            ...(['openai', 'anthropic'] as const).flatMap((family) => fitOrNone(parameters, family)),
          ]
          const check = createValidator(schema)
          for (const args of all) {
            if (!accepts(schema, args)) continue
            accepted += 1
            expect(await check(args)).toEqual({ value: args })
            // Top-level alternatives are merged, so each property appears with its schema there.
            if (!('anyOf' in schema) && !('oneOf' in schema))
              expect(shown.map((one) => accepts(one, args))).not.toContain(false)
          }
        },
      ),
      { numRuns: sampled(400) },
    )
    expect(accepted).toBeGreaterThan(sampled(400) / 2)
  })

  test.each<[string, JsonObject, Json]>([
    ['exclusiveMinimum: true', { type: 'integer', minimum: 0, exclusiveMinimum: true }, 1],
    ['exclusiveMaximum: false', { type: 'integer', maximum: 5, exclusiveMaximum: false }, 5],
    ['null limits', { type: 'string', minLength: null, maxLength: null, pattern: null, format: null }, 'x'],
    ['another name of a type', { type: ['int', 'NULL'] }, 5],
    ['an unknown type', { type: 'file' }, { a: 1 }],
    ['an empty enum', { type: 'string', enum: [] }, 'x'],
    ['nullable', { type: 'string', enum: ['a'], nullable: true }, null],
    ['a nullable reference', { $ref: '#/properties/text', nullable: true }, null],
    ['a required flag', { type: 'string', required: true }, 'x'],
    ['a property without a schema', { type: 'object', properties: { a: 'string' } }, { a: 1 }],
  ])('are not narrowed by %s', async (_, schema, input) => {
    const validate = createValidator({ type: 'object', properties: { n: schema, text: { type: 'string' } } })
    expect(await validate({ n: input })).toEqual({ value: { n: input } })
  })
})

describe('fitTools', () => {
  const tool = (name: string, parameters: JsonObject = { type: 'object', properties: {} }) => ({
    name,
    description: name,
    parameters,
  })
  const request = (tools: ModelRequest['tools']) => ({ tools }) as ModelRequest

  test('returns a request unchanged if its tools fit, and keeps specs identical between requests', () => {
    const plain = request([tool('a'), tool('b')])
    expect(fitTools(plain, 'gemini', undefined)).not.toBe(plain)
    expect(fitTools(plain, 'openai', undefined)).toBe(plain)
    const [first, second] = [1, 2].map(() => fitTools(plain, 'gemini', undefined).tools[0])
    expect(first).toBe(second)
    expect(fitTools(request([...plain.tools]), 'gemini', undefined).tools[0]).toBe(first)
  })

  test('omits tools that cannot fit, with a warning on each request', () => {
    const warnings: [string, string][] = []
    const tools = request([tool('3d'), tool('a')])
    for (const _ of [1, 2]) {
      const fitted = fitTools(tools, 'gemini', (...warning) => warnings.push(warning))
      expect(fitted.tools.map(({ name }) => name)).toEqual(['a'])
    }
    expect(warnings).toEqual(
      [1, 2].map(() => [
        'tool_left_out',
        "The tool '3d' is omitted: Gemini only accepts names that start with a letter or an underscore. Rename it.",
      ]),
    )
  })

  test.each<[string, string, SchemaFamily]>([
    ['openai', 'gpt-5-mini', 'openai'],
    ['openrouter', 'anthropic/claude-sonnet-4.5', 'anthropic'],
    ['vertex.anthropic.messages', 'claude-opus-4', 'anthropic'],
    ['google.generative-ai', 'gemini-2.5-pro', 'gemini'],
    ['openrouter', 'google/gemini-2.5-flash', 'gemini'],
    ['ollama', 'qwen3', 'openai'],
  ])('recognizes the family of %s with %s', (provider, model, family) => {
    expect(findSchemaFamily(provider, model)).toBe(family)
  })
})
