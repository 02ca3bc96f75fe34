import { readFileSync } from 'node:fs'
import * as z from 'zod'
import { createAgent, objectOrThrow, openaiChat } from '../../../src/index.js'
import { findStructuredOutput } from '../../../src/core/models/openai/openai-provider.js'
import { startRehearsal } from '../../../src/rehearsal/index.js'

const page = readFileSync('docs/structured-output.md', 'utf8')

describe('docs/structured-output.md', () => {
  it('runs as described', async () => {
    const [, code = ''] = /```js\n([^]*?)```/.exec(page) ?? []
    const body = code.replace(/^import .*\n/gm, '').replace("{ model: 'gpt-5-mini' }", 'options')
    const rehearsal = await startRehearsal({
      scenario: { turns: [{ text: '{"city":"Paris","days":2}' }] },
      strict: true,
    })
    const options = { model: 'm', baseURL: rehearsal.url, apiKey: 'none' }
    // oxlint-disable-next-line typescript/no-implied-eval -- code of our own page
    const example = new Function(
      'createAgent',
      'objectOrThrow',
      'openaiChat',
      'z',
      'options',
      `return (async () => {\n${body}\nreturn { city, days }\n})()`,
    ) as (...args: unknown[]) => unknown
    try {
      const args = [createAgent, objectOrThrow, openaiChat, z, options]
      expect(await example(...args)).toEqual({ city: 'Paris', days: 2 })
    } finally {
      await rehearsal.close()
    }
  })

  it('names exactly the known providers', () => {
    const [, beside = '', alone = ''] =
      /(OpenAI[^.]*?) support it together with tools\. ([^.]*?) support it only in requests/.exec(page) ?? []
    const names = (list: string) =>
      list.split(/,|\band\b/).map((name) => name.toLowerCase().replaceAll(/\s/g, ''))
    const asWritten: Record<string, string> = { xai: 'x-ai' }
    for (const name of names(beside))
      expect(findStructuredOutput(asWritten[name] ?? name)).toBe('beside_tools')
    for (const name of names(alone)) expect(findStructuredOutput(name)).toBe('alone')
    expect([...names(beside), ...names(alone)]).toHaveLength(12)
  })
})
