// pi's agent, which stores the conversation. In cases with a limit, the documented variant ends a run with `finishTurn`.
import { Agent } from '@earendil-works/pi-agent-core'
import { createModels, createProvider, Type } from '@earendil-works/pi-ai'
import { openAICompletionsApi } from '@earendil-works/pi-ai/api/openai-completions.lazy'
import { facts } from '../facts.mjs'

export const { variants } = facts.pi

const model = (baseUrl) => ({
  id: 'scripted',
  name: 'scripted',
  api: 'openai-completions',
  provider: 'scripted',
  baseUrl,
  reasoning: false,
  input: ['text'],
  cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
  contextWindow: 128_000,
  maxTokens: 32_000,
})

const textOf = ({ content }) => content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('')

export function open({ baseURL, variant, tools, limits }) {
  const models = createModels()
  const scripted = model(baseURL)
  models.setProvider(
    createProvider({
      id: 'scripted',
      name: 'scripted',
      baseUrl: baseURL,
      auth: { apiKey: { name: 'scripted', resolve: async () => ({ auth: { apiKey: 'none' } }) } },
      models: [scripted],
      api: openAICompletionsApi(),
    }),
  )
  let turns = 0
  let isAtLimit = false
  const agent = new Agent({
    initialState: {
      systemPrompt: '',
      model: scripted,
      tools: tools.map(({ name, description, fields, execute }) => ({
        name,
        label: name,
        description,
        parameters: Type.Object(
          Object.fromEntries(Object.keys(fields).map((field) => [field, Type.String()])),
        ),
        execute: async (_, input, signal) => ({
          content: [{ type: 'text', text: String(await execute(input, { signal })) }],
          details: {},
        }),
      })),
    },
    streamFn: (model, context, options) =>
      models.streamSimple(model, context, variant === 'documented' ? { ...options, maxRetries: 2 } : options),
    ...(limits.steps && {
      finishTurn({ toolResults }) {
        turns++
        isAtLimit = turns >= limits.steps && toolResults.length > 0
        return isAtLimit ? { action: 'end' } : undefined
      },
    }),
  })
  return {
    async say(text, { signal } = {}) {
      turns = 0
      isAtLimit = false
      const before = agent.state.messages.length
      if (signal?.aborted)
        return { text: '', ok: false, ended: "not started: the caller's signal", usage: undefined }
      const stop = () => agent.abort()
      signal?.addEventListener('abort', stop, { once: true })
      let thrown
      await agent.prompt(text).catch((error) => {
        thrown = error
      })
      signal?.removeEventListener('abort', stop)
      const own = agent.state.messages.slice(before).filter(({ role }) => role === 'assistant')
      const last = own.at(-1)
      const sum = (key) => own.reduce((total, { usage }) => total + (usage?.[key] ?? 0), 0)
      return {
        text: last ? textOf(last) : '',
        ok: !thrown && !isAtLimit && last?.stopReason === 'stop',
        ended:
          thrown?.message ??
          last?.errorMessage ??
          `stopReason ${last?.stopReason}${isAtLimit ? ', the limit of the hook' : ''}`,
        usage: { input: sum('input'), output: sum('output') },
      }
    },
  }
}
