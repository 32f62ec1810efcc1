import type { Clock } from '../../base/clock.ts';
import type { CallSubject, ObservedCall, StartedCall } from '../../csi/unary-call.ts';
import type { RecentCalls } from '../../diagnostics/status-page/recent-calls.ts';
import type { ReportedCall } from '../../diagnostics/status-page/status-report.ts';

/** Calls to the driver that have not ended, in the order in which they began. */
export class CallsInFlight {
  readonly #options: { clock: Clock; requests: RecentCalls };
  readonly #calls = new Set<StartedCall & { readonly startedMs: number }>();

  constructor(options: { clock: Clock; requests: RecentCalls }) {
    this.#options = options;
  }

  begin({ method, about }: StartedCall): ObservedCall {
    const { clock, requests } = this.#options;
    const call = { method, about, startedMs: clock.monotonicMs() };
    this.#calls.add(call);
    return {
      ended: (code) => {
        this.#calls.delete(call);
        const seconds = (clock.monotonicMs() - call.startedMs) / 1000;
        requests.record(shortName(method), { failed: code !== 'OK', seconds });
      },
    };
  }

  /** Longest first. */
  list(): ReportedCall[] {
    const nowMs = this.#options.clock.monotonicMs();
    return [...this.#calls].map(({ method, about, startedMs }) => ({
      method: shortName(method),
      about: about === undefined ? '' : subjectText(about),
      seconds: (nowMs - startedMs) / 1000,
    }));
  }
}

/** `CreateVolume` for `/csi.v1.Controller/CreateVolume`. */
function shortName(method: string): string {
  return method.slice(method.lastIndexOf('/') + 1);
}

function subjectText(about: CallSubject): string {
  const [[kind, name] = ['', '']] = Object.entries(about);
  return `${kind} ${name}`;
}
