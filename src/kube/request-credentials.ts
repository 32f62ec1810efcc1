/** What a transport asks of whoever knows the credentials. */

/** TLS settings of a connection; a new object whenever a file behind them changed. */
export interface TlsSettings {
  ca?: string | Buffer;
  cert?: string | Buffer;
  key?: string | Buffer;
  servername?: string;
  rejectUnauthorized?: boolean;
}

/** Headers of a request; a list stands for a header that is sent several times. */
export type RequestHeaders = Record<string, string | string[]>;

/** Where the API server is, and what goes with each request to it. */
export interface RequestCredentials {
  readonly serverUrl: URL;
  readonly proxyUrl: string | undefined;
  /** Answers must not be asked for in compressed form. */
  readonly disableCompression: boolean;
  /** Rises with each renewal: tells whether a failed request already used the newest credentials. */
  readonly generation: number;
  /** The headers that say who we are. */
  headers(): Promise<RequestHeaders>;
  /** The TLS settings; compare by identity: another object means that connections should be made anew. */
  tls(): TlsSettings;
  /** The server answered 401 to a request made with `generation`: read everything anew before the next one. */
  renew(generation: number): void;
}
