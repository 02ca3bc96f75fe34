// Lists tools whose schemas violate the providers' rules, and accepts any arguments.
import { serve, text, tool } from './raw-server.mjs'

const withSchema = (name, inputSchema) => tool(name, { inputSchema })
const one = (schema) => ({ type: 'object', properties: { n: schema } })

serve({
  name: 'odd',
  tools: () => [
    withSchema('any_of', {
      type: 'object',
      anyOf: [
        { properties: { content: { type: 'string' } }, required: ['content'] },
        { properties: { source_url: { type: 'string' } }, required: ['source_url'] },
      ],
    }),
    withSchema('named', {
      $ref: '#/definitions/args',
      definitions: { args: { type: 'object', properties: { id: { type: 'string' } }, required: ['id'] } },
      $schema: 'http://json-schema.org/draft-07/schema#',
    }),
    withSchema('no_items', one({ type: 'array' })),
    withSchema('booleans', one({ type: 'integer', minimum: 0, exclusiveMinimum: true })),
    withSchema('names', one({ type: ['int', null], enum: [] })),
    withSchema('keys', {
      type: 'object',
      properties: { $top: { type: 'integer' }, 'filter[name]': {} },
      required: ['$top'],
    }),
    withSchema('php', { type: 'object', properties: [], required: null }),
    withSchema('typeless', { properties: { n: { type: 'string', default: 'x' } }, required: ['n'] }),
    withSchema('strict', {
      ...one({ type: 'integer', multipleOf: 2 }),
      additionalProperties: false,
      required: ['n'],
    }),
  ],
  call: (name, args) => text(JSON.stringify(args)),
})
