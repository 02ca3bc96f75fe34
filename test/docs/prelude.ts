/** Names that a document may use without an import: these, and all exports of the core. */
export const fromEntries: Record<string, string> = {
  fileStore: 'statewright/stores/file',
  startStudio: 'statewright/studio',
  memory: 'statewright/memory',
  createBudget: 'statewright/fleet',
  startRehearsal: 'statewright/rehearsal',
}

/** The reader's definitions, for the type checker. */
export const ownProgram = `
interface Db { find(name: string): Promise<string> }
type ModelProvider = sw.ModelProvider
type ToolExecution<Context> = sw.ToolExecution<Context>

var agent: sw.Agent
var store: sw.SessionStore
var agents: sw.Agents
var Context: { current(): { cancellationSignal: AbortSignal; heartbeat(details: unknown): void } }
interface InngestStep {
  run(id: string, work: () => Promise<sw.SessionResult>): Promise<sw.SessionResult>
  sleep(id: string, ms: number): Promise<void>
  waitForEvent(id: string, options: object): Promise<{ data: { answers: sw.SessionAnswer[] } } | null>
}
var inngest: {
  createFunction(
    config: object,
    trigger: object,
    work: (given: { event: { data: { session: string; input: string } }; step: InngestStep }) => Promise<unknown>,
  ): unknown
}
function createHook(options: { token: string }): PromiseLike<sw.SessionAnswer[]>
var model: sw.ModelProvider
var tools: sw.Tool[]
var search: sw.Tool
var run: sw.Run
var client: import('openai').OpenAI
var myClient: {
  complete(
    messages: unknown,
    tools: unknown,
    signal: AbortSignal,
  ): Promise<Pick<sw.ModelResponse, 'text' | 'toolCalls' | 'usage'>>
}
var rows: sw.Message[]
function findOrder(id: unknown): Promise<string>
function save(messages: readonly sw.Message[]): void
var documents: { source: string; text: string }[]
var key: Buffer
var text: string
var classifierURL: string
var db: Db
var noPrices: sw.Shield
var budget: import('statewright/fleet').SharedBudget
var prices: NonNullable<sw.AgentOptions['prices']>
var machine: import('xstate').AnyStateMachine
var reports: Record<string, import('statewright/testing').PropertyReport>
var bank: { transfer(to: string, amount: number, options: object): Promise<string> }
var exporter: { begin(year: number): Promise<string>; wait(job: unknown, signal: AbortSignal): Promise<string> }
function myStore(options: { schema: string; now: () => number }): sw.SessionStore
function blocked(name: string): boolean
function askSomebody(name: string, text: string): Promise<boolean>
function askSomebody(question: string): Promise<{ yes: boolean; why: string; edited?: object }>
function runItHere(call: sw.PendingCall): Promise<unknown>
function lookUp(messages: readonly sw.Message[], options: { signal: AbortSignal }): Promise<string>
function screenshot(): Promise<Uint8Array>
`
