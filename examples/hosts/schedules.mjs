// Starts sessions at fixed times with the scheduler of an engine. The session id contains the time, so a repeated trigger
// continues the session instead of starting another one.
const input = 'Write the report.'

/**
 * DBOS: a scheduled workflow enqueues the session. Call this before `DBOS.launch()`, and the function that it returns after
 * `sessions.start()`.
 */
export function scheduleReports(DBOS, sessions, schedule = '30 8 * * MON-FRI') {
  const report = DBOS.registerWorkflow(
    (time) => sessions.enqueue({ session: `report@${time.toISOString()}`, input }),
    { name: 'report' },
  )
  return () => DBOS.applySchedules([{ scheduleName: 'report', workflowFn: report, schedule }])
}

/** Restate: a service calls itself with a delay, and sends the session its first turn. Start it with one POST to `/reports/fire`. */
export const createReports = (restate, everyMs = 3_600_000) =>
  restate.service({
    name: 'reports',
    handlers: {
      fire: async (ctx, at) => {
        const delay = Math.max(0, at + everyMs - (await ctx.date.now()))
        ctx.serviceSendClient({ name: 'reports' }).fire(at + everyMs, restate.rpc.sendOpts({ delay }))
        ctx.objectSendClient({ name: 'session' }, `report@${new Date(at).toISOString()}`).run({ input })
      },
    },
  })
