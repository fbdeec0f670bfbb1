//! One client on standard input and output; when it hangs up, the server is done.

use crate::service::Service;

use super::carry;

/// Serves whoever started us, until standard input ends or the service is stopped.
pub async fn stdio(service: &Service) {
    let wire = service.connect();
    carry(tokio::io::stdin(), tokio::io::stdout(), wire, service.stopping()).await;
}
