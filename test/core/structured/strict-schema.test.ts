import { z } from 'zod'
import type { JsonObject } from '../../../machines/agent/json.js'
import { toStrictSchema } from '../../../src/core/structured/strict-schema.js'
import { toParameters } from '../../../src/core/tools/input-schema.js'

const strict = (schema: z.ZodType) => toStrictSchema(toParameters(schema as never))
const object = (properties: JsonObject, more: JsonObject = {}): JsonObject => ({
  type: 'object',
  properties,
  required: Object.keys(properties),
  ...more,
})

describe('a strict schema', () => {
  it('closes every object and keeps the rest', () => {
    const schema = z.object({
      city: z.string().describe('Where.'),
      at: z.object({ lat: z.number().min(-90), days: z.array(z.enum(['mon', 'tue'])).max(2) }),
      note: z.string().nullable(),
    })
    expect(strict(schema)).toEqual({
      type: 'object',
      properties: {
        city: { type: 'string', description: 'Where.' },
        at: {
          type: 'object',
          properties: {
            lat: { type: 'number', minimum: -90 },
            days: { type: 'array', maxItems: 2, items: { type: 'string', enum: ['mon', 'tue'] } },
          },
          required: ['lat', 'days'],
          additionalProperties: false,
        },
        note: { type: ['string', 'null'] },
      },
      required: ['city', 'at', 'note'],
      additionalProperties: false,
    })
  })

  it('describes constraints that providers do not enforce', () => {
    const schema = object({
      name: { type: 'string', minLength: 2, maxLength: 9, description: 'Theirs.' },
      site: { type: 'string', format: 'uri' },
      code: { type: 'string', pattern: '^(?!x)' },
    })
    expect(toStrictSchema(schema)?.['properties']).toEqual({
      name: { type: 'string', description: 'Theirs. (minLength: 2, maxLength: 9)' },
      site: { type: 'string', description: '(format: "uri")' },
      code: { type: 'string', description: '(pattern: "^(?!x)")' },
    })
  })

  it('keeps formats and patterns that providers support', () => {
    const properties = {
      id: { type: 'string', format: 'uuid' },
      code: { type: 'string', pattern: '^[a-z]+$' },
    }
    expect(toStrictSchema(object(properties))?.['properties']).toEqual(properties)
  })

  it('writes a discriminated union as anyOf', () => {
    const kinds = [
      z.object({ kind: z.literal('a') }),
      z.object({ kind: z.literal('b'), n: z.int() }),
    ] as const
    const schema = strict(z.object({ what: z.discriminatedUnion('kind', kinds) }))
    expect(schema).toMatchObject({
      properties: { what: { anyOf: [{ additionalProperties: false }, { required: ['kind', 'n'] }] } },
    })
    expect(JSON.stringify(schema)).not.toContain('oneOf')
  })

  it('allows no keys next to a reference', () => {
    const node = { $ref: '#/$defs/node', description: 'The first.' }
    const defs = { node: object({ next: { anyOf: [{ $ref: '#/$defs/node' }, { type: 'null' }] } }) }
    const schema = toStrictSchema(object({ head: node }, { $defs: defs }))
    expect(schema).toMatchObject({
      properties: { head: { description: 'The first.', anyOf: [{ $ref: '#/$defs/node' }] } },
      $defs: { node: { additionalProperties: false } },
    })
  })

  it('may refer to itself', () => {
    const Tree = z.object({
      value: z.string(),
      get children() {
        return z.array(Tree)
      },
    })
    expect(strict(Tree)).toMatchObject({ additionalProperties: false, required: ['value', 'children'] })
  })

  it('does not change its source schema', () => {
    const schema = object({ a: { type: 'string', minLength: 1 } })
    const before = structuredClone(schema)
    toStrictSchema(schema)
    expect(schema).toEqual(before)
  })

  it.each<[string, JsonObject]>([
    ['an optional property', { type: 'object', properties: { a: { type: 'string' } }, required: [] }],
    [
      'a nested optional property',
      object({ a: { type: 'array', items: { type: 'object', properties: { b: { type: 'null' } } } } }),
    ],
    ['an open object', object({ a: { type: 'string' } }, { additionalProperties: true })],
    ['an object of any shape', object({ a: { type: 'object' } })],
    ['a record', object({ a: { type: 'object', properties: {}, additionalProperties: { type: 'number' } } })],
    ['a tuple', object({ a: { type: 'array', prefixItems: [{ type: 'string' }], items: false } })],
    ['an array of anything', object({ a: { type: 'array' } })],
    ['a value of any type', object({ a: {} })],
    ['an intersection', object({ a: { allOf: [{ type: 'string' }] } })],
    ['a negation', object({ a: { type: 'string', not: { const: 'x' } } })],
    ['a condition', object({ a: { type: 'string' } }, { if: {} })],
    ['an unknown keyword', object({ a: { type: 'string', 'x-unit': 'm' } })],
    ['an external reference', object({ a: { $ref: 'https://example.com/a.json' } })],
    ['a union at the top', object({ a: { type: 'string' } }, { anyOf: [{ required: ['a'] }] })],
  ])('does not exist for %s', (_, schema) => {
    expect(toStrictSchema(schema)).toBeNull()
  })

  it('exists for ten levels of objects, and not for eleven', () => {
    const nested = (levels: number): JsonObject =>
      levels === 1 ? object({ a: { type: 'string' } }) : object({ a: nested(levels - 1) })
    expect(toStrictSchema(nested(10))).not.toBeNull()
    expect(toStrictSchema(nested(11))).toBeNull()
  })
})
