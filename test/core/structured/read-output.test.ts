import * as fc from 'fast-check'
import { z } from 'zod'
import { readOutput } from '../../../src/core/structured/read-output.js'
import { toParameters, createValidator } from '../../../src/core/tools/input-schema.js'

const schema = z.object({ city: z.string(), days: z.array(z.int()) })
const read = (text: string, by: typeof schema | z.ZodObject = schema) =>
  readOutput(text, { validate: createValidator(by as never), schema: toParameters(by as never) })

const problemOf = async (text: string, by?: z.ZodObject): Promise<string> => {
  const reading = await read(text, by)
  return reading.ok ? '' : reading.problem
}

const paris = '{"city":"Paris","days":[1,2]}'

describe('an answer', () => {
  it.each([
    ['unchanged', paris],
    ['with whitespace around it', `\n  ${paris}\n\n`],
    ['in a json fence', `\`\`\`json\n${paris}\n\`\`\``],
    ['in a fence of any kind', `\`\`\`\n${paris}\n\`\`\``],
    ['in a fence on one line', `\`\`\`json ${paris} \`\`\``],
    ['in a fence with text around it', `Here it is:\n\n\`\`\`JSON\n${paris}\n\`\`\`\nAnything else?`],
  ])('is read %s', (_, text) => {
    expect(read(text)).toEqual({ ok: true, value: { city: 'Paris', days: [1, 2] } })
  })

  it('may contain fences in its strings, in a fence or not', () => {
    const text = JSON.stringify({ city: '```js\n1\n```', days: [] })
    expect(read(text)).toMatchObject({ ok: true })
    expect(read(`\`\`\`json\n${text}\n\`\`\``)).toMatchObject({ ok: true, value: { city: '```js\n1\n```' } })
  })

  it('gets each mismatch on a separate line', async () => {
    expect(await problemOf('{"days":[1,"two"]}')).toBe(
      'The answer does not fit the output schema:\n' +
        '- answer.city: Invalid input: expected string, received undefined\n' +
        '- answer.days[1]: Invalid input: expected number, received string',
    )
  })

  it('gets the position of invalid JSON, without quoting the text there', async () => {
    expect(await problemOf('{"city":"sk-secret-key",')).toBe(
      'The answer is not a JSON object: the text ends where a property name in double quotes is expected, at position 24.',
    )
    expect(await problemOf('secret')).not.toContain('secret')
  })

  it.each([['[1]'], ['"Paris"'], ['null'], ['7']])('%s is not an object', async (text) => {
    expect(await problemOf(text)).toMatch(/^The answer does not fit the output schema:\n- answer: /)
  })

  it('is empty if it is only whitespace', async () => {
    expect(await problemOf(' \n')).toMatch(/is empty/)
  })

  it('is refused if its check throws, and nothing is thrown', async () => {
    const throwing = z.object({
      a: z.string().refine(() => {
        throw new Error('boom')
      }),
    })
    expect(await problemOf('{"a":""}', throwing)).toMatch(/could not be validated against.*boom/)
  })

  it('is refused if its asynchronous check rejects, and nothing is thrown', async () => {
    const validate = () => Promise.reject(new Error('boom'))
    expect(await readOutput('{}', { validate, schema: {} })).toEqual({
      ok: false,
      problem: expect.stringContaining('boom'),
    })
  })

  it('nested a hundred thousand levels deep has a defined outcome', async () => {
    const deep = z.object({ a: z.any() })
    const text = `{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}`
    expect(typeof (await read(text, deep)).ok).toBe('boolean')
    expect(typeof (await read(text.replace('a', '\\u0061'), deep)).ok).toBe('boolean')
  })

  it('adds no property named __proto__', async () => {
    const loose = z.looseObject({})
    for (const key of ['__proto__', '\\u005f_proto__']) {
      const reading = await read(`{"${key}":{"admin":true},"a":1}`, loose)
      expect(reading).toEqual({ ok: true, value: { a: 1 } })
      expect(Object.keys((reading as { value: object }).value)).toEqual(['a'])
    }
  })

  it('of any text is either a matching object, or a problem description', async () => {
    const texts = fc.oneof(
      fc.string(),
      fc.json(),
      fc.string().map((text) => `\`\`\`json${text}\`\`\``),
    )
    await fc.assert(
      fc.asyncProperty(texts, async (text) => {
        const reading = await read(text)
        if (reading.ok) expect(schema.safeParse(reading.value).success).toBe(true)
        else expect(reading.problem).toMatch(/^The answer /)
      }),
    )
  })

  it('of any matching object is that object, in a fence or not', async () => {
    const objects = fc.record({ city: fc.string(), days: fc.array(fc.integer()) })
    await fc.assert(
      fc.asyncProperty(objects, async (object) => {
        const text = JSON.stringify(object, null, 2)
        expect(await read(text)).toEqual({ ok: true, value: object })
        expect(await read(`\`\`\`json\n${text}\n\`\`\``)).toEqual({ ok: true, value: object })
      }),
    )
  })
})
