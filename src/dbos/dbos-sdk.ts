/** The part of the `DBOS` class from `@dbos-inc/dbos-sdk` (version 5) that is used. The class is passed in, not imported. */
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
  listWorkflows(options: DbosListOptions): Promise<readonly DbosWorkflow[]>
  resumeWorkflow(id: string, options: { queueName: string }): Promise<unknown>
}

/** Concurrency and rate limits of the DBOS queue. */
export interface DbosQueueOptions {
  /** The limit for each process. */
  workerConcurrency?: number
  /** The limit for all processes together. */
  globalConcurrency?: number
  /** Maximum number of workflow starts per period. */
  rateLimit?: { limitPerPeriod: number; periodSec: number }
  /** Poll interval for an idle queue, in milliseconds. */
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
