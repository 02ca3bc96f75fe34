// What each library is, which of its documented ways the second column takes and on which page they stand, and which features
// it does not claim. The runner reads these without the library.
const both = (lacks) => ({ defaults: lacks, documented: lacks })
const noIdle = { idleLimit: 'no time limit between two pieces of a stream is documented' }
const noDeadline = { deadline: 'no time limit of a run is documented' }
const noSession = {
  session: 'the caller keeps the history, and takes care that one run reads what another leaves',
}
const noResume = { resume: 'no run is documented to go on in another process after a crash' }
const noSubAgents = {
  subAgents: 'agents below an agent are tools of the caller, whose usage the caller counts',
}
const noPeople = {
  approvals: 'a hook decides over a call while the run works; no run rests until a person has answered',
}
const noBudget = { tokenBudget: 'no budget of tokens is documented' }

export const facts = {
  ai: {
    title: 'AI SDK',
    packages: ['ai', '@ai-sdk/openai-compatible'],
    way: '`includeUsage`; messages kept by `onStepEnd`; `stopWhen` in loops; `experimental_toolApprovalSecret`',
    page: 'https://ai-sdk.dev/docs/agents/loop-control',
    lacks: both({ ...noSession, ...noSubAgents, ...noResume }),
  },
  agents: {
    title: 'OpenAI Agents',
    packages: ['@openai/agents'],
    way: 'a `MemorySession`; `toolNotFoundBehavior`; `maxTurns` in loops',
    page: 'https://openai.github.io/openai-agents-js/guides/sessions/',
    lacks: {
      defaults: { ...noIdle, ...noBudget, ...noDeadline, ...noSession, ...noResume },
      documented: { ...noIdle, ...noBudget, ...noDeadline, ...noResume },
    },
  },
  langchain: {
    title: 'LangChain, LangGraph',
    packages: ['langchain', '@langchain/openai'],
    way: 'a `MemorySaver` with a thread; `modelCallLimitMiddleware`. In both columns one retry, since six take minutes',
    page: 'https://docs.langchain.com/oss/javascript/langchain/short-term-memory',
    lacks: {
      defaults: {
        ...noIdle,
        ...noBudget,
        ...noSession,
        ...noSubAgents,
        approvals: 'approvals need a checkpointer',
        resume: 'a run goes on from a checkpointer',
        stepLimit: '`recursionLimit` counts steps of the graph, not requests',
      },
      documented: { ...noIdle, ...noBudget, ...noSubAgents },
    },
  },
  mastra: {
    title: 'Mastra',
    packages: ['@mastra/core'],
    way: 'messages kept by `onStepFinish`; `maxRetries: 2`; `maxSteps` in loops',
    page: 'https://mastra.ai/reference/streaming/agents/stream',
    lacks: both({
      ...noIdle,
      ...noBudget,
      ...noDeadline,
      ...noSession,
      ...noResume,
    }),
  },
  strands: {
    title: 'Strands',
    packages: ['@strands-agents/sdk'],
    way: '`limits` of a call in loops',
    page: 'https://strandsagents.com/docs/user-guide/concepts/agents/agent-loop/',
    lacks: both({ ...noIdle, ...noDeadline, ...noResume }),
  },
  pi: {
    title: 'pi',
    packages: ['@earendil-works/pi-agent-core'],
    way: '`maxRetries: 2`; `finishTurn`, which ends a run, in loops',
    page: 'https://github.com/earendil-works/pi/tree/main/packages/agent',
    lacks: {
      defaults: {
        ...noIdle,
        ...noBudget,
        ...noDeadline,
        ...noPeople,
        ...noSubAgents,
        ...noResume,
        retries: 'retries are an option (`maxRetries`)',
      },
      documented: { ...noIdle, ...noBudget, ...noDeadline, ...noPeople, ...noSubAgents, ...noResume },
    },
  },
  statewright: {
    title: 'Statewright',
    packages: ['statewright'],
    way: 'a `memoryStore`; `limits.maxSteps` in loops',
    page: 'docs/configuration.md, docs/sessions.md',
    lacks: {
      defaults: { savedApprovals: 'waiting runs are kept in a store', resume: 'runs go on from a store' },
      documented: {},
    },
  },
  right: { title: 'the right loop', packages: [] },
  wrong: { title: 'the wrong loops', packages: [] },
}
