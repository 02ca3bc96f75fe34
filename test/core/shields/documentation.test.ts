import { readFileSync } from 'node:fs'
import { OpenAI } from 'openai'
import { openaiChat } from '../../../src/core/models/openai/openai-provider.js'
import * as shields from '../../../src/core/shields/index.js'
import type { Shield, ShieldOutcome, ShieldsOptions } from '../../../src/core/shields/index.js'
import { verdictOf } from './support.js'

const page = readFileSync('docs/shields.md', 'utf8')
const [configured = '', written = '', builtIn = '', byHand = ''] = [
  ...page.matchAll(/```js\n([^]*?)```/g),
].map(([, code = '']) => code)

/** Evaluates an example and resolves with the named value. */
async function run(code: string, names: string, input: Record<string, unknown> = {}): Promise<unknown[]> {
  const scope = {
    ...shields,
    openaiChat,
    client: new OpenAI({ apiKey: 'test-key' }),
    model: null,
    tools: [],
    ...input,
  }
  // oxlint-disable-next-line typescript/no-implied-eval -- code of our own page
  const evaluate = new Function(
    ...Object.keys(scope),
    `return (async () => { ${code}\nreturn [${names}] })()`,
  )
  return (await (evaluate as (...values: unknown[]) => unknown)(...Object.values(scope))) as unknown[]
}

describe('docs/shields.md', () => {
  it('configures shields as described', async () => {
    let options: ShieldsOptions | undefined
    const createAgent = (agent: { shields: ShieldsOptions }): void => {
      options = agent.shields
    }
    await run(configured, '', { createAgent })
    const { toolOutput, timeoutMs } = shields.createShieldSet(options)
    expect(toolOutput.map(({ name }) => name)).toEqual(['secrets', 'pii'])
    expect(page).toContain(`${timeoutMs / 1000} 000 ms`)
  })

  it('defines shields that decide as described', async () => {
    const harmful = (content: string): unknown => ({
      json: () => Promise.resolve({ harmful: content.includes('bomb') }),
    })
    const fetch = (_: string, { body }: { body: string }) => Promise.resolve(harmful(body))
    const scope = { fetch, classifierURL: 'http://127.0.0.1:9' }
    const [noPrices, classifier] = (await run(written, 'noPrices, classifier', scope)) as [Shield, Shield]
    expect(await verdictOf(noPrices, '5 €')).toMatchObject({ action: 'block' })
    expect(await verdictOf(noPrices, '5')).toEqual({ action: 'allow' })
    expect(await verdictOf(classifier, 'a bomb')).toEqual({ action: 'block' })
    expect(await verdictOf(classifier, 'a balm')).toEqual({ action: 'allow' })
  })

  it('uses the built-in shields, with their names and defaults', async () => {
    const shields = (await run(builtIn, 'secrets, moderation, guard')) as Shield[]
    for (const { name } of shields) expect(page).toContain(`name: '${name}'`)
    const [secrets] = shields
    const key = ['AK', 'IA', 'Q7RS2TUV3WXY4ZAB'].join('')
    expect(secrets && (await verdictOf(secrets, key))).toMatchObject({ content: '<aws>' })
  })

  it('runs shields manually', async () => {
    const text = 'It costs 5 €.'
    const [noPrices] = await run(written, 'noPrices')
    const [outcome] = (await run(byHand, '{ action, message, findings }', { noPrices, text })) as [
      ShieldOutcome,
    ]
    expect(outcome).toMatchObject({ action: 'block', message: 'Only people may quote prices.' })
    expect(outcome.findings).toHaveLength(2)
  })
})
