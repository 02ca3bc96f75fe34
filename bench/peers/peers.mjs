// The measured peers, with one file of `runners` each, and the packages whose versions the table lists.
export const bare = 'openai'

export const peers = [
  { name: 'openai', title: 'bare loop on `openai`', packages: ['openai'] },
  { name: 'fetch', title: 'bare loop on fetch', packages: [] },
  { name: 'xstate', title: 'minimal loop on XState', packages: ['xstate'] },
  { name: 'statewright', title: '**Statewright**', packages: ['statewright'] },
  { name: 'ai-sdk', title: 'AI SDK', packages: ['ai', '@ai-sdk/openai-compatible'] },
  { name: 'openai-agents', title: 'OpenAI Agents', packages: ['@openai/agents'] },
  { name: 'langchain', title: 'LangChain, LangGraph', packages: ['langchain', '@langchain/openai'] },
  { name: 'mastra', title: 'Mastra', packages: ['@mastra/core'] },
  { name: 'strands', title: 'Strands', packages: ['@strands-agents/sdk'] },
  { name: 'pi', title: 'pi', packages: ['@earendil-works/pi-agent-core'] },
]
