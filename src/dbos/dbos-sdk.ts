/**
 * What is used of `DBOS`, the class of the package `@dbos-inc/dbos-sdk` from version 5: it is handed over, not imported.
 */
export interface DbosLike {
  readonly executorID: string
  readonly workflowID: string | undefined
  registerWorkflow<Args extends unknown[], Result>(
    work: (...args: Args) => Promise<Result>,
    config: { name: string },
  ): (...args: Args) => Promise<Result>
  registerQueue(name: string, options: DbosQueueOptions): Promise<unknown>
  runStep<Result>(step: () => Promise<Result>, config: { name: string }): Promise<Result>
  enqueueWorkflowWithOptions(options: DbosEnqueueOptions, ...args: unknown[]): Promise<unknown>
  listWorkflows(asked: DbosListOptions): Promise<readonly DbosWorkflow[]>
  resumeWorkflow(id: string, options: { queueName: string }): Promise<unknown>
}

/** How many sessions run at once, and how fast they begin: DBOS limits both. */
export interface DbosQueueOptions {
  /** By each process. */
  workerConcurrency?: number
  /** By all together. */
  globalConcurrency?: number
  /** How many workflows begin in so many seconds. */
  rateLimit?: { limitPerPeriod: number; periodSec: number }
  /** How often an idle queue is asked for work, in milliseconds. */
  minPollingIntervalMs?: number
}

interface DbosEnqueueOptions {
  queueName: string
  workflowName: string
  workflowID: string
  delaySeconds?: number
  priority?: number
  appVersion?: string
}

export interface DbosListOptions {
  workflowName: string
  status: 'PENDING' | 'DELAYED'
  workflow_id_prefix?: string
  limit: number
  offset: number
  loadInput?: boolean
}

export interface DbosWorkflow {
  readonly workflowID: string
  readonly executorId?: string
  readonly input?: unknown[]
  readonly updatedAt?: number
  readonly dequeuedAt?: number
}
